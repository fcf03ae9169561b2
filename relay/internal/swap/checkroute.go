package swap

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// maxAccounts and maxData limit a router's instruction before its accounts are checked: a
	// larger instruction does not fit a transaction.
	maxAccounts = 128
	maxData     = shieldpool.MaxTransactionSizeV1
	// maxTables is the largest number of lookup tables that a router may name.
	maxTables = 8
)

// forbiddenPrograms are programs that cannot be routers. The pool program calls the router's
// program with the swap state's signature, and with it these programs would do whatever the
// router's instruction says.
func forbiddenPrograms() []solana.PublicKey {
	return []solana.PublicKey{
		{}, solana.TokenProgramID, solana.Token2022ProgramID, solana.SPLAssociatedTokenAccountProgramID,
		solana.ComputeBudget, solana.AddressLookupTableProgramID, solana.BPFLoaderProgramID,
		solana.BPFLoaderUpgradeableProgramID, solana.StakeProgramID, solana.VoteProgramID, solana.ConfigProgramID,
	}
}

// routeGuard decides which accounts a router's instruction may name. The pool program
// passes on the permissions that accounts have in the whole transaction: an account
// that is a signer or writable elsewhere in the transaction has that permission in the
// router's call too, whatever the router's instruction says. So forbidden accounts are
// refused by address, even if the instruction only reads them.
type routeGuard struct {
	program solana.PublicKey
	// state is the swap state. It may sign but must not be writable: no router needs to write
	// it, because only the pool program moves its lamports.
	state solana.PublicKey
	// ownAccounts are the state's token accounts for the input and the output.
	ownAccounts [2]solana.PublicKey
	// forbidden are accounts that no router may name: fee payers and their token accounts,
	// the pool's own accounts, and the recipient's wallet and token account. The pool program
	// itself pays the recipient. A router that could name the recipient's accounts could take
	// tokens for which the wallet has approved a delegate.
	forbidden map[solana.PublicKey]bool
}

// newGuard makes the guard of a swap; payers are all keys that may pay.
func newGuard(r *snapshot, program solana.PublicKey, payers []solana.PublicKey) (*routeGuard, error) {
	p := r.accounts.Pool
	g := &routeGuard{program: program, state: r.accounts.State, ownAccounts: [2]solana.PublicKey{r.accounts.WSOL, r.accounts.Output}, forbidden: map[solana.PublicKey]bool{
		p.Address: true, p.MerkleTree: true, p.Treasury: true, p.Profile.ProgramID: true,
		r.wallet: true, r.terms.RecipientATA: true, r.submission.Call.Recipient: true,
	}}
	for _, n := range r.submission.Call.Inputs.Nullifiers {
		address, _, err := p.Nullifier(n)
		if err != nil {
			return nil, err
		}
		g.forbidden[address] = true
	}
	// An unset wallet is the system program's address, which routers may name.
	delete(g.forbidden, solana.SystemProgramID)
	if err := g.forbid(r.terms.OutputMint, payers...); err != nil {
		return nil, err
	}
	return g, nil
}

// forbid forbids fee payers, and their token accounts for wrapped SOL and for the output
// mint.
func (g *routeGuard) forbid(outputMint solana.PublicKey, payers ...solana.PublicKey) error {
	for _, payer := range payers {
		g.forbidden[payer] = true
		for _, mint := range []solana.PublicKey{solana.WrappedSol, outputMint} {
			ata, err := shieldpool.AssociatedTokenAccount(payer, mint)
			if err != nil {
				return err
			}
			g.forbidden[ata] = true
		}
	}
	return nil
}

// check returns a *rejectedByGuard for an instruction that must not be signed, and
// errTooLarge for an instruction that is too large for any transaction.
func (g *routeGuard) check(ix *Instructions) error {
	if !ix.Program.Equals(g.program) {
		return &rejectedByGuard{RejectedRoute{What: RejectedProgram}}
	}
	if len(ix.Accounts) > maxAccounts || len(ix.Data) > maxData {
		return errTooLarge
	}
	if len(ix.LookupTables) > maxTables {
		return &rejectedByGuard{RejectedRoute{What: RejectedTable}}
	}
	var written [2]bool
	for _, a := range ix.Accounts {
		isState := a.PublicKey.Equals(g.state)
		switch {
		case a.IsSigner && !isState:
			return &rejectedByGuard{RejectedRoute{What: RejectedSigner}}
		case g.forbidden[a.PublicKey], isState && a.IsWritable:
			return &rejectedByGuard{RejectedRoute{What: RejectedAccount}}
		}
		for i, own := range g.ownAccounts {
			written[i] = written[i] || a.IsWritable && a.PublicKey.Equals(own)
		}
	}
	if !written[0] || !written[1] {
		// The instruction would not swap from and to this swap's accounts.
		return &rejectedByGuard{RejectedRoute{What: RejectedAccount}}
	}
	return nil
}
