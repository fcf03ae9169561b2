package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
)

// launchAll launches one transaction for each move.
func (r *run) launchAll(ctx context.Context, moves []move) error {
	for i := range moves {
		if err := r.launch(ctx, &moves[i]); err != nil {
			return err
		}
	}
	return nil
}

// launch simulates, signs, commits and sends a move's transaction. A transaction that fails in the
// simulation is not signed. When the chain does not answer, launch waits and returns, and the next
// plan reads the balances anew.
func (r *run) launch(ctx context.Context, m *move) error {
	sim, err := txmgr.Simulate(ctx, r.Chain, m.build, m.from, compute(m.price), r.minContextSlot)
	if err != nil {
		return r.pauseIfUnavailable(ctx, "simulate a transaction", err)
	}
	if sim.Err != nil {
		return r.pause(ctx, fmt.Sprintf("a transaction of %s that succeeds in simulation (the last one fails with %v); balances are read again", m.from, sim.Err))
	}
	payer := slices.IndexFunc(r.from, func(k txmgr.Payer) bool { return k.PublicKey() == m.from })
	signed, err := txmgr.Sign(ctx, r.Chain, m.build, r.from[payer], compute(m.price))
	if err != nil {
		return r.pauseIfUnavailable(ctx, "sign a transaction", err)
	}
	a := &Attempt{Attempt: *signed, Step: r.step, Transfers: m.transfers}
	switch err := r.session.Record(ctx, *a); {
	case errors.Is(err, ErrSameTransaction):
		return r.pause(ctx, "a newer blockhash")
	case err != nil:
		return fmt.Errorf("record a transaction: %w", err) // it may be recorded: the next run finds it
	}
	r.Log.InfoContext(ctx, "sweep transaction signed", "step", r.step, "payer", a.FeePayer, "signature", a.Signature, "lamports", a.Lamports(), "recipients", len(a.Transfers), "fee", a.Fee)
	r.send(ctx, a, true)
	return nil
}

// send sends committed bytes. Whatever the answer is, the transaction may land until it is dead.
// When every endpoint refuses the first send, this run does not send the transaction again.
func (r *run) send(ctx context.Context, a *Attempt, first bool) {
	r.lastSent[a.Signature] = r.Now()
	err := r.Chain.Send(context.WithoutCancel(ctx), a.Raw, onchain.Sending{First: first}, a.BlockhashSlot)
	var refused *onchain.SendError
	switch {
	case first && errors.As(err, &refused):
		r.refused[a.Signature] = true
		r.Log.WarnContext(ctx, "transaction rejected by preflight; no new transaction is signed before it has expired", "signature", a.Signature, "error", err)
	case err != nil:
		r.Log.DebugContext(ctx, "send timed out; outcome unknown", "signature", a.Signature, "error", err)
	}
}
