package swap

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// execution is what the transaction of an execution is built from.
type execution struct {
	*snapshot
	ix *Instructions
	// format is V1 if Options.Formats includes V1, even if V1 is not the first of them. With V1,
	// no lookup tables have to be read, and the number of addresses limits a route rather than
	// its size.
	format shieldpool.Format
	// tables are the lookup tables for a transaction of format V0; none for V1.
	tables []shieldpool.LookupTable
	guard  *routeGuard
}

// newAccounts counts the token accounts that the execution creates: those that stay open
// (the recipient's, if it is missing), and those that the execution closes again.
func (e *execution) newAccounts() (kept, closed shieldpool.NewAccounts) {
	if e.recipient == accountMissing {
		kept.TokenAccounts = 1
	}
	closed.TokenAccounts = e.missing() - kept.TokenAccounts
	return kept, closed
}

// execute drafts the execution at the quoted price. If the route does not fit a transaction
// and there is a narrower width to try, it returns neither a draft nor an error.
func (s *Planner) execute(ctx context.Context, r *snapshot) (*txmgr.Draft, error) {
	e, err := s.prepare(ctx, r)
	if errors.Is(err, errTooLarge) {
		return nil, s.retryNarrower(r)
	}
	if err != nil {
		return nil, err
	}
	kept, closed := e.newAccounts()
	return &txmgr.Draft{
		Purpose: txmgr.PurposeExecute, Format: e.format, EndsWork: true, Creates: kept, Closes: closed, Urgent: urgent(e.slot, e.timeout),
		Fits: func(compute shieldpool.Compute) bool {
			_, err := e.assemble(solana.PublicKey{0: 0xfe}, compute, solana.Hash{})
			return err == nil
		},
		Build: func(payer solana.PublicKey, compute shieldpool.Compute, hash solana.Hash) (*solana.Transaction, error) {
			return s.build(ctx, e, payer, compute, hash)
		},
	}, nil
}

// prepare asks for the instructions of the quote, and checks everything that is to be
// signed.
func (s *Planner) prepare(ctx context.Context, r *snapshot) (*execution, error) {
	ix, err := s.router.Instructions(ctx, r.quote, r.accounts.State)
	if err != nil {
		return nil, s.classify(ctx, r, err)
	}
	e := &execution{snapshot: r, ix: ix, format: shieldpool.V0}
	if slices.Contains(s.formats(), shieldpool.V1) {
		e.format = shieldpool.V1
	}
	if e.guard, err = newGuard(r, s.program, s.payers.Keys()); err != nil {
		return nil, err
	}
	if err := e.guard.check(ix); err != nil {
		return nil, s.classify(ctx, r, err)
	}
	if e.format == shieldpool.V0 {
		if err := s.readTables(ctx, e); err != nil {
			return nil, s.classify(ctx, r, err)
		}
	}
	// Any payer will do here: the size is the same for every payer.
	if _, err = e.assemble(solana.PublicKey{0: 0xfe}, shieldpool.Compute{Format: e.format}, solana.Hash{}); err != nil {
		return nil, s.classify(ctx, r, err)
	}
	return e, nil
}

// build makes the transaction for a payer, unless the quote is now too old or the
// timeout too near.
func (s *Planner) build(ctx context.Context, e *execution, payer solana.PublicKey, compute shieldpool.Compute, hash solana.Hash) (*solana.Transaction, error) {
	now := s.now()
	if e.quote.tooOld(now) {
		return nil, s.deferAtMost(e.snapshot, ReasonQuoteStale, nil, minWait)
	}
	// Slots have passed since the chain was read.
	if passed := now.Sub(e.at) / s.slotDuration(); passed > 0 && e.slot+uint64(passed)+e.lastSlots >= e.timeout {
		return nil, s.deferral(e.snapshot, ReasonTimeoutNear, nil)
	}
	// The payer may have been added after the guard was made.
	if err := e.guard.forbid(e.terms.OutputMint, payer); err != nil {
		return nil, err
	}
	err := e.guard.check(e.ix)
	var tx *solana.Transaction
	if err == nil {
		tx, err = e.assemble(payer, compute, hash)
	}
	if errors.Is(err, errTooLarge) {
		return nil, s.deferral(e.snapshot, ReasonRouteTooLarge, err)
	}
	return tx, s.classify(ctx, e.snapshot, err)
}

// assemble assembles the transaction. It returns errTooLarge when the transaction exceeds the
// network's limits.
func (e *execution) assemble(payer solana.PublicKey, compute shieldpool.Compute, hash solana.Hash) (*solana.Transaction, error) {
	prepare, err := e.accounts.Prepare(payer)
	if err != nil {
		return nil, err
	}
	metas := make([]*solana.AccountMeta, len(e.ix.Accounts))
	for i := range e.ix.Accounts {
		metas[i] = &e.ix.Accounts[i]
	}
	execute, err := e.accounts.Execute(payer, e.ix.Program, metas, e.ix.Data)
	if err != nil {
		return nil, err
	}
	var all []solana.Instruction
	creations := e.accounts.CreateAccounts(payer, e.wallet)
	for i, a := range []accountFact{e.wsol, e.output, e.recipient} {
		if a == accountMissing {
			all = append(all, creations[i])
		}
	}
	all = append(all, prepare, execute)
	var named []*solana.AccountMeta
	addresses := map[solana.PublicKey]bool{payer: true}
	for _, ix := range all {
		named, addresses[ix.ProgramID()] = append(named, ix.Accounts()...), true
	}
	if compute.Format != shieldpool.V1 { // the older formats have instructions for the compute budget
		addresses[solana.ComputeBudget] = true
	}
	for _, a := range named {
		addresses[a.PublicKey] = true
	}
	if len(addresses) > shieldpool.MaxAddresses {
		return nil, errTooLarge
	}
	tx, err := shieldpool.Versioned(payer, compute, hash, worthwhileTables(e.tables, named), all...)
	if err != nil {
		return nil, err
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode transaction: %w", err)
	}
	if tx.Message.Header.NumRequiredSignatures != 1 || !tx.Message.AccountKeys[0].Equals(payer) {
		return nil, &rejectedByGuard{RejectedRoute{What: RejectedSigner}}
	}
	if len(raw) > compute.Format.MaxSize() {
		return nil, errTooLarge
	}
	return tx, nil
}
