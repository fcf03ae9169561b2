package poolprogram

import (
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// The roles that the instructions of a swap's second leg need.
var (
	prepareRoles = []shieldpool.Role{
		shieldpool.RolePayer, shieldpool.RoleSwapState, shieldpool.RoleSwapWSOL, shieldpool.RoleTokenProgram,
	}
	executeRoles = []shieldpool.Role{
		shieldpool.RolePayer, shieldpool.RolePool, shieldpool.RoleSwapState, shieldpool.RoleSwapWSOL, shieldpool.RoleSwapOutput,
		shieldpool.RoleRecipientATA, shieldpool.RoleTokenProgram, shieldpool.RoleRouterProgram,
	}
	closeRoles        = []shieldpool.Role{shieldpool.RolePool, shieldpool.RoleSwapState, shieldpool.RoleRecipient}
	closeWrappedRoles = []shieldpool.Role{shieldpool.RoleSwapWSOL, shieldpool.RoleTokenProgram}
)

// prepareSwapSol wraps a swap's lamports, once. Anybody may ask for it, alone
// and again, so there is nothing in it to choose.
func (p *program) prepareSwapSol(v *bank.Invocation) error {
	if len(v.Data) != 1 {
		return v.Refuse(errInvalidInstructionData, "PrepareSwapSol takes no data but its tag")
	}
	accounts, err := roles(v, p.profile.Accounts.PrepareSwapSol)
	if err != nil {
		return err
	}
	stateAccount, wsol := accounts[shieldpool.RoleSwapState], accounts[shieldpool.RoleSwapWSOL]
	state, err := readSwapState(v, stateAccount)
	if err != nil {
		return err
	}
	if _, err := stateTokens(v, wsol, stateAccount.Key(), solana.WrappedSol); err != nil {
		return err
	}
	if state.wrapped {
		v.Log("Program log: Already wrapped")
		return nil
	}
	state.wrapped = true
	if err := stateAccount.SetData(state.bytes()); err != nil {
		return err
	}
	if err := stateAccount.SubLamports(state.Lamports); err != nil {
		return err
	}
	if err := wsol.AddLamports(state.Lamports); err != nil {
		return err
	}
	return v.Invoke(token.NewSyncNativeInstruction(wsol.Key()).Build())
}

// stateTokens returns the balance of a token account, which must be a swap
// state's for the mint.
func stateTokens(v *bank.Invocation, account *bank.AccountRef, state, mint solana.PublicKey) (uint64, error) {
	at, err := associated(v, state, mint)
	if err != nil {
		return 0, err
	}
	if account.Key() != at {
		return 0, bank.ErrInvalidSeeds
	}
	return balance(v, account, mint, state)
}

// execution is one ExecuteSwap while it runs.
type execution struct {
	program  *program
	v        *bank.Invocation
	accounts map[shieldpool.Role]*bank.AccountRef
	at       derived
	state    *swapState
	// wsol and recipient are the balances before the router runs, in lamports
	// and in the output mint's smallest unit.
	wsol, recipient uint64
}

// executeSwap lets a router swap the lamports of the state, moves the output to
// the recipient and closes the state with its token accounts. The caller
// chooses the router: only the recipient's output is checked.
func (p *program) executeSwap(v *bank.Invocation) error {
	x := &execution{program: p, v: v}
	for _, step := range []func() error{x.checkState, x.checkTokens, x.route, x.checkConsumed, x.pay, x.close} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) checkState() (err error) {
	if len(x.v.Data) < 1+field {
		return x.v.Refuse(errInvalidInstructionData, "want tag, nullifier and the router's data")
	}
	nullifier := x.v.Data[1 : 1+field]
	if x.accounts, err = roles(x.v, x.program.profile.Accounts.ExecuteSwap); err != nil {
		return err
	}
	account := x.accounts[shieldpool.RoleSwapState]
	if x.at, err = x.program.stateAt(x.v, x.accounts[shieldpool.RolePool], nullifier); err != nil {
		return err
	}
	if account.Key() != x.at.key {
		return bank.ErrInvalidSeeds
	}
	if x.state, err = readSwapState(x.v, account); err != nil {
		return err
	}
	if !x.state.wrapped {
		// Otherwise a stranger's wrapped SOL would be swapped instead of the user's
		// lamports, and those would go to the payer.
		return x.v.Refuse(bank.ErrInvalidArgument, "the swap's lamports are not wrapped: PrepareSwapSol comes first")
	}
	if x.accounts[shieldpool.RoleRouterProgram].Key() == x.v.ProgramID {
		return x.v.Refuse(bank.ErrIncorrectProgramID, "the pool program is no router")
	}
	return nil
}

// stateAt returns the address of the state of a swap in a pool.
func (p *program) stateAt(v *bank.Invocation, poolAccount *bank.AccountRef, nullifier []byte) (derived, error) {
	of, err := p.byAddress(v, poolAccount.Key())
	if err != nil {
		return derived{}, err
	}
	at, err := p.derive(of, p.profile.Seeds.SwapState, nullifier)
	if err != nil {
		return at, bank.ErrInvalidSeeds
	}
	return at, v.Consume(at.units())
}

func (x *execution) checkTokens() (err error) {
	if x.wsol, err = stateTokens(x.v, x.accounts[shieldpool.RoleSwapWSOL], x.at.key, solana.WrappedSol); err != nil {
		return err
	}
	if _, err = stateTokens(x.v, x.accounts[shieldpool.RoleSwapOutput], x.at.key, x.state.OutputMint); err != nil {
		return err
	}
	recipient := x.accounts[shieldpool.RoleRecipientATA]
	if recipient.Key() != x.state.RecipientATA {
		return x.v.Refuse(bank.ErrInvalidArgument, "the recipient's token account is not the one that the proof names")
	}
	x.recipient, err = balance(x.v, recipient, x.state.OutputMint, solana.PublicKey{})
	return err
}

// route calls the router with the accounts that follow the program's own. The
// state signs; of all others the rights are those that the transaction gave.
func (x *execution) route() error {
	first := len(x.program.profile.Accounts.ExecuteSwap)
	metas := make([]*solana.AccountMeta, 0, x.v.Accounts()-first)
	for i := first; i < x.v.Accounts(); i++ {
		account, err := x.v.Account(i)
		if err != nil {
			return err
		}
		metas = append(metas, &solana.AccountMeta{
			PublicKey: account.Key(), IsWritable: account.IsWritable(),
			IsSigner: account.IsSigner() || account.Key() == x.at.key,
		})
	}
	router := x.accounts[shieldpool.RoleRouterProgram].Key()
	return x.v.Invoke(solana.NewInstruction(router, metas, x.v.Data[1+field:]), x.at.seeds)
}

func (x *execution) checkConsumed() error {
	left, err := balance(x.v, x.accounts[shieldpool.RoleSwapWSOL], solana.WrappedSol, x.at.key)
	if err != nil {
		return err
	}
	if x.wsol-min(left, x.wsol) < x.state.Lamports {
		return x.v.Refuse(errInputNotConsumed, "the router did not take all of the swap's wrapped SOL")
	}
	return nil
}

// pay moves the whole output, donated tokens included, to the recipient and
// demands the user's minimum.
func (x *execution) pay() error {
	mint := x.state.OutputMint
	output, recipient := x.accounts[shieldpool.RoleSwapOutput], x.accounts[shieldpool.RoleRecipientATA]
	got, err := balance(x.v, output, mint, x.at.key)
	if err != nil {
		return err
	}
	if got > 0 {
		transfer := token.NewTransferInstruction(got, output.Key(), recipient.Key(), x.at.key, nil).Build()
		if err := x.v.Invoke(transfer, x.at.seeds); err != nil {
			return err
		}
	}
	now, err := balance(x.v, recipient, mint, solana.PublicKey{})
	if err != nil {
		return err
	}
	if now-min(now, x.recipient) < x.state.MinOutput {
		return x.v.Refuse(errOutputBelowMinimum, "the recipient got less than the user's minimum")
	}
	return nil
}

// close returns the rents to the payer of this transaction, with anything that
// others sent to the accounts.
func (x *execution) close() error {
	payer := x.accounts[shieldpool.RolePayer]
	for _, role := range []shieldpool.Role{shieldpool.RoleSwapWSOL, shieldpool.RoleSwapOutput} {
		if err := closeTokens(x.v, x.accounts[role], payer, x.at); err != nil {
			return err
		}
	}
	return closeAccount(x.accounts[shieldpool.RoleSwapState], payer)
}

// closeSwapState returns all lamports of a swap to the user's wallet after its
// timeout. Anybody may call it, so the payer gets nothing.
func (p *program) closeSwapState(v *bank.Invocation) error {
	if len(v.Data) != 1 {
		return v.Refuse(errInvalidInstructionData, "CloseSwapState takes no data but its tag")
	}
	order := p.profile.Accounts.CloseSwapState
	accounts, err := roles(v, order)
	if err != nil {
		return err
	}
	account, wallet := accounts[shieldpool.RoleSwapState], accounts[shieldpool.RoleRecipient]
	state, err := readSwapState(v, account)
	if err != nil {
		return err
	}
	at, err := p.stateAt(v, accounts[shieldpool.RolePool], state.Nullifier[:])
	if err != nil {
		return err
	}
	if account.Key() != at.key {
		return bank.ErrInvalidSeeds
	}
	recipient, err := associated(v, wallet.Key(), state.OutputMint)
	if err != nil {
		return err
	}
	if recipient != state.RecipientATA {
		return v.Refuse(bank.ErrInvalidSeeds, "the wallet is not the one that the swap's recipient account is derived from")
	}
	if v.Slot() < state.TimeoutSlot {
		return v.Refuse(errSwapNotReady, "the swap still has time")
	}
	if state.wrapped || v.Accounts() > len(order) {
		if err := p.unwrap(v, len(order), wallet, at); err != nil {
			return err
		}
	}
	return closeAccount(account, wallet)
}

// unwrap closes the state's account of wrapped SOL to the wallet. It and the
// token program follow the accounts of every refund.
func (p *program) unwrap(v *bank.Invocation, first int, wallet *bank.AccountRef, state derived) error {
	accounts, err := rolesFrom(v, first, p.profile.Accounts.CloseWrapped)
	if err != nil {
		return err
	}
	wsol := accounts[shieldpool.RoleSwapWSOL]
	if _, err := stateTokens(v, wsol, state.key, solana.WrappedSol); err != nil {
		return err
	}
	return closeTokens(v, wsol, wallet, state)
}
