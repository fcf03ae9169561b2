package shieldpool

import (
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"
)

// Swap has the accounts that a swap uses after its first leg. Its methods build the instructions
// of the second leg.
type Swap struct {
	Pool *Pool
	// Nullifier is the swap's first nullifier. The address of State is derived from it.
	Nullifier [32]byte
	Terms     SwapTerms
	// State is the account that holds the lamports, and Bump is its bump seed. WSOL and Output
	// are State's associated token accounts of wrapped SOL and of the output mint.
	State, WSOL, Output solana.PublicKey
	Bump                uint8
}

// Swap derives the accounts of a swap.
func (p *Pool) Swap(nullifier [32]byte, terms SwapTerms) (*Swap, error) {
	s := &Swap{Pool: p, Nullifier: nullifier, Terms: terms}
	var err error
	if s.State, s.Bump, err = p.SwapState(nullifier); err != nil {
		return nil, fmt.Errorf("derive swap_state address: %w", err)
	}
	if s.WSOL, err = AssociatedTokenAccount(s.State, solana.WrappedSol); err != nil {
		return nil, err
	}
	s.Output, err = AssociatedTokenAccount(s.State, terms.OutputMint)
	return s, err
}

func (s *Swap) addresses(payer solana.PublicKey) Addresses {
	return Addresses{
		RolePayer: payer, RolePool: s.Pool.Address, RoleSwapState: s.State, RoleSwapWSOL: s.WSOL, RoleSwapOutput: s.Output,
		RoleRecipientATA: s.Terms.RecipientATA, RoleTokenProgram: solana.TokenProgramID, RoleSystemProgram: solana.SystemProgramID,
	}
}

// CreateAccounts returns instructions that create the three token accounts of the swap if these
// are missing, in this order: the state's WSOL and Output, and the wallet's account of the output
// mint. payer pays their rent.
func (s *Swap) CreateAccounts(payer, wallet solana.PublicKey) []solana.Instruction {
	create := func(account, owner, mint solana.PublicKey) solana.Instruction {
		return solana.NewInstruction(solana.SPLAssociatedTokenAccountProgramID, solana.AccountMetaSlice{
			solana.Meta(payer).WRITE().SIGNER(), solana.Meta(account).WRITE(), solana.Meta(owner), solana.Meta(mint),
			solana.Meta(solana.SystemProgramID), solana.Meta(solana.TokenProgramID),
		}, []byte{createIdempotent})
	}
	return []solana.Instruction{
		create(s.WSOL, s.State, solana.WrappedSol),
		create(s.Output, s.State, s.Terms.OutputMint),
		create(s.Terms.RecipientATA, wallet, s.Terms.OutputMint),
	}
}

// createIdempotent is the associated token account program's instruction that succeeds even if
// the account already exists (spl-associated-token-account).
const createIdempotent = 1

// Prepare makes PrepareSwapSol, which wraps the swap's lamports. It may land without the other
// instructions, more than once, and from any payer.
func (s *Swap) Prepare(payer solana.PublicKey) (solana.Instruction, error) {
	accounts, err := metas(s.Pool.Profile.Accounts.PrepareSwapSol, s.addresses(payer))
	if err != nil {
		return nil, err
	}
	return solana.NewInstruction(s.Pool.Profile.ProgramID, accounts, []byte{s.Pool.Profile.Tags.PrepareSwapSol}), nil
}

// Execute makes ExecuteSwap, which calls the router's instruction. router, accounts and data are
// the program, accounts and data of that instruction. The pool program signs for State, so State
// is not marked as a signer here.
func (s *Swap) Execute(payer, router solana.PublicKey, accounts []*solana.AccountMeta, data []byte) (solana.Instruction, error) {
	a := s.addresses(payer)
	a[RoleRouterProgram] = router
	all, err := metas(s.Pool.Profile.Accounts.ExecuteSwap, a)
	if err != nil {
		return nil, err
	}
	for _, m := range accounts {
		all = append(all, &solana.AccountMeta{PublicKey: m.PublicKey, IsSigner: m.IsSigner && !m.PublicKey.Equals(s.State), IsWritable: m.IsWritable})
	}
	return solana.NewInstruction(s.Pool.Profile.ProgramID, all, append(append([]byte{s.Pool.Profile.Tags.ExecuteSwap}, s.Nullifier[:]...), data...)), nil
}

// Close makes CloseSwapState. The program accepts it from the timeout slot on, and pays all
// lamports of the swap to wallet. wrapped says that the lamports are in WSOL.
func (s *Swap) Close(payer, wallet solana.PublicKey, wrapped bool) (solana.Instruction, error) {
	a := s.addresses(payer)
	a[RoleRecipient] = wallet
	order := s.Pool.Profile.Accounts.CloseSwapState
	if wrapped {
		order = append(order[:len(order):len(order)], s.Pool.Profile.Accounts.CloseWrapped...)
	}
	accounts, err := metas(order, a)
	if err != nil {
		return nil, err
	}
	return solana.NewInstruction(s.Pool.Profile.ProgramID, accounts, []byte{s.Pool.Profile.Tags.CloseSwapState}), nil
}

// SwapEnding is how a swap ended.
type SwapEnding string

// A swap ends in one of these two ways, and only once.
const (
	Executed SwapEnding = "executed"
	Refunded SwapEnding = "refunded"
)

// EndedBy returns how a successful instruction ended this swap; "" if the instruction did not
// end the swap.
func (s *Swap) EndedBy(program solana.PublicKey, accounts []solana.PublicKey, data []byte) SwapEnding {
	p := s.Pool.Profile
	if !program.Equals(p.ProgramID) || len(data) == 0 {
		return ""
	}
	var order []AccountRole
	var ending SwapEnding
	switch data[0] {
	case p.Tags.ExecuteSwap:
		order, ending = p.Accounts.ExecuteSwap, Executed
	case p.Tags.CloseSwapState:
		order, ending = p.Accounts.CloseSwapState, Refunded
	default:
		return ""
	}
	at := slices.IndexFunc(order, func(a AccountRole) bool { return a.Role == RoleSwapState })
	if at < 0 || at >= len(accounts) || !accounts[at].Equals(s.State) {
		return ""
	}
	return ending
}
