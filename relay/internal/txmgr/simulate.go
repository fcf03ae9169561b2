package txmgr

import (
	"context"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Build builds the unsigned transaction that the payer pays, in the format compute.Format.
type Build func(payer solana.PublicKey, compute shieldpool.Compute, blockhash solana.Hash) (*solana.Transaction, error)

// Simulate runs the unsigned transaction on a node that has reached minContextSlot. The node
// fills in a blockhash.
func Simulate(ctx context.Context, chain interface {
	Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error)
}, build Build, payer solana.PublicKey, compute shieldpool.Compute, minContextSlot uint64,
) (onchain.Simulation, error) {
	tx, err := build(payer, compute, solana.Hash{})
	if err != nil {
		return onchain.Simulation{}, err
	}
	tx.Signatures = make([]solana.Signature, tx.Message.Header.NumRequiredSignatures)
	raw, err := tx.MarshalBinary()
	if err != nil {
		return onchain.Simulation{}, fmt.Errorf("encode transaction: %w", err)
	}
	return chain.Simulate(ctx, raw, true, minContextSlot)
}

// simulate simulates the transaction, and sets its limits to the largest consumption of its kind
// plus a margin. A transaction that fails here is never signed.
func (m *Manager) simulate(ctx context.Context, t *transaction, minContextSlot uint64) (*Failure, error) {
	began := m.Now()
	sim, failure, err := m.simulateWith(ctx, t.draft, t.compute.Tip, t.payer.PublicKey(), minContextSlot)
	if t.lane != "" && (onchain.KindOf(err) == onchain.KindUnverified || failure != nil && m.failsByTip(t, failure.Err)) {
		cause := err
		if failure != nil {
			cause = failure.Err
		}
		m.Log.InfoContext(ctx, "transaction goes without its tip, because its simulation fails with it: check the lane's tip accounts", "endpoint", t.lane, "error", cause)
		t.dropTip()
		sim, failure, err = m.simulateWith(ctx, t.draft, t.compute.Tip, t.payer.PublicKey(), minContextSlot)
	}
	if err != nil {
		return nil, err
	}
	t.simulatedBy, t.simulatedAt = sim.Endpoint, m.Now()
	m.Observer.Stage("simulate", t.simulatedAt.Sub(began))
	if failure != nil {
		if failure.PayerLacksLamports() {
			m.Payers.MarkRefused(t.payer.PublicKey(), failure.Err)
		}
		return failure, nil
	}
	t.compute.Limit = m.compute.units.observe(t.shape(), sim.UnitsConsumed)
	if t.draft.Purpose == PurposeExecute { // routes differ, so each execution gets a limit from its own simulation
		t.compute.Limit = unitsRule().limit(sim.UnitsConsumed + sim.UnitsConsumed/10)
	}
	t.compute.LoadedData = m.compute.observeLoadedData(t.shape(), sim.LoadedData)
	return nil, nil
}

// SimulateDraft simulates a draft with one payer after the other, until a simulation succeeds, or
// fails for another reason than the payer's lack of lamports. It returns nil when a simulation
// succeeded. It does not mark payers as refused, because it does not choose the payers by balance.
func (m *Manager) SimulateDraft(ctx context.Context, d *Draft, minContextSlot uint64) (failure *Failure, err error) {
	for _, payer := range m.Payers.Keys() {
		if _, failure, err = m.simulateWith(ctx, d, shieldpool.Tip{}, payer, minContextSlot); err != nil {
			return nil, err
		}
		if failure == nil || !failure.PayerLacksLamports() {
			break
		}
	}
	return failure, nil
}

func (m *Manager) simulateWith(ctx context.Context, d *Draft, tip shieldpool.Tip, payer solana.PublicKey, minContextSlot uint64) (sim onchain.Simulation, failure *Failure, err error) {
	maxCompute := shieldpool.Compute{Format: d.Format, Limit: maxComputeUnits, LoadedData: maxLoadedData, Tip: tip}
	sim, err = Simulate(ctx, m.Chain, d.Build, payer, maxCompute, minContextSlot)
	switch {
	case err != nil:
		return sim, nil, err
	case sim.Err == nil:
		return sim, nil, nil
	case sim.Unverified:
		return sim, nil, errUnverified("simulateTransaction")
	}
	failure = &Failure{Err: sim.Err, Class: m.Class(d.Purpose, d.Format, sim.Err), Slot: sim.Slot}
	if failure.Class == shieldpool.ClassRaiseCompute {
		// The simulation had the highest possible limits, so the transaction can never succeed.
		failure.Class = shieldpool.ClassBadInput
	}
	return sim, failure, nil
}
