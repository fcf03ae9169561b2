package swap

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// maxAccounts and maxData bound a router's instruction before it is checked: nothing
	// larger fits a transaction.
	maxAccounts = 128
	maxData     = shieldpool.MaxTransactionSize
	// maxLocks is how many accounts a transaction may name (Solana), and maxTables
	// how many lookup tables the relay reads for one.
	maxLocks  = 64
	maxTables = 8
)

// neverRouters are programs that cannot be routers: with the swap state's signature, a call
// of them could do anything that the router likes.
func neverRouters() []solana.PublicKey {
	return []solana.PublicKey{
		{}, solana.TokenProgramID, solana.Token2022ProgramID, solana.SPLAssociatedTokenAccountProgramID,
		solana.ComputeBudget, solana.AddressLookupTableProgramID, solana.BPFLoaderProgramID,
		solana.BPFLoaderUpgradeableProgramID, solana.StakeProgramID, solana.VoteProgramID, solana.ConfigProgramID,
	}
}

// guard says what a router's instruction may touch. A pool program passes on the
// permissions of the transaction's accounts, no matter what the router's list says: an
// account that the transaction signs or writes elsewhere is signed and writable for the
// router too. So accounts are refused by address, in any capacity.
type guard struct {
	program solana.PublicKey
	// state may sign, and only that: the program that owns it moves its lamports.
	state solana.PublicKey
	// own are the state's token accounts: what goes in and what comes out.
	own [2]solana.PublicKey
	// forbidden are accounts that no router may name: fee payers and their token
	// accounts, the pool's own accounts, and the recipient's wallet and token account,
	// which the pool's program pays by itself. A wallet that has allowed a stranger to
	// take tokens would lose them here.
	forbidden map[solana.PublicKey]bool
}

// newGuard is the swap's guard; payers are all keys that may pay.
func newGuard(r *round, program solana.PublicKey, payers []solana.PublicKey) (*guard, error) {
	p := r.swap.Pool
	g := &guard{program: program, state: r.swap.State, own: [2]solana.PublicKey{r.swap.WSOL, r.swap.Output}, forbidden: map[solana.PublicKey]bool{
		p.Address: true, p.MerkleTree: true, p.Treasury: true, p.Profile.ProgramID: true,
		r.wallet: true, r.terms.RecipientATA: true, r.c.Call.Recipient: true,
	}}
	for _, n := range r.c.Call.Inputs.Nullifiers {
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

// forbid adds fee payers, and their token accounts of both mints.
func (g *guard) forbid(outputMint solana.PublicKey, payers ...solana.PublicKey) error {
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

// check refuses an instruction that is not fit to be signed: an *ownRejection, or
// errTooLarge for one that fits no transaction.
func (g *guard) check(ix *Instructions) error {
	if !ix.Program.Equals(g.program) {
		return &ownRejection{RejectedRoute{What: RejectedProgram}}
	}
	if len(ix.Accounts) > maxAccounts || len(ix.Data) > maxData {
		return errTooLarge
	}
	if len(ix.LookupTables) > maxTables {
		return &ownRejection{RejectedRoute{What: RejectedTable}}
	}
	var written [2]bool
	for _, a := range ix.Accounts {
		isState := a.PublicKey.Equals(g.state)
		switch {
		case a.IsSigner && !isState:
			return &ownRejection{RejectedRoute{What: RejectedSigner}}
		case g.forbidden[a.PublicKey], isState && a.IsWritable:
			return &ownRejection{RejectedRoute{What: RejectedAccount}}
		}
		for i, own := range g.own {
			written[i] = written[i] || a.IsWritable && a.PublicKey.Equals(own)
		}
	}
	if !written[0] || !written[1] {
		// It would swap lamports that are not this swap's.
		return &ownRejection{RejectedRoute{What: RejectedAccount}}
	}
	return nil
}
