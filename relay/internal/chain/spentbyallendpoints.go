package chain

import (
	"context"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Inspect reads, at one slot, which of the inputs' nullifiers are spent, and the recipient's
// account. A zero recipient is not read. The slot is not before minContextSlot, so a caller that
// knows of an event at minContextSlot gets an answer that includes the event. The returned slot is
// never one that only a single endpoint claims. A nullifier is spent when its account exists and
// belongs to the program. An account that does not belong to the program proves nothing, because
// anybody can transfer a lamport to the address.
func (p *PoolReader) Inspect(ctx context.Context, in *shieldpool.PublicInputs, recipient solana.PublicKey, minContextSlot uint64) (onchain.Inspection, error) {
	var keys []solana.PublicKey
	var inputs []int // the index of the input for each key; the recipient's key, if any, comes last
	for i := range in.Nullifiers {
		if !in.HasNullifier(i) {
			continue
		}
		key, _, err := p.pool.Nullifier(in.Nullifiers[i])
		if err != nil {
			return onchain.Inspection{}, fmt.Errorf("derive nullifier%d address: %w", i, err)
		}
		keys, inputs = append(keys, key), append(inputs, i)
	}
	if !recipient.IsZero() {
		keys = append(keys, recipient)
	}
	accounts, slot, err := p.readTogether(ctx, keys, minContextSlot)
	if err != nil {
		return onchain.Inspection{}, unavailable(err)
	}
	out := onchain.Inspection{Slot: minContextSlot}
	// If only one endpoint claims the slot, that endpoint may have invented it. No honest node
	// would answer a call with that slot as minContextSlot.
	if p.corroborated(slot) {
		out.Slot = slot
	}
	for k, i := range inputs {
		out.Spent[i] = accounts[k] != nil && accounts[k].Owner.Equals(p.pool.Profile.ProgramID)
	}
	if len(keys) > len(inputs) && accounts[len(inputs)] != nil {
		r := accounts[len(inputs)]
		out.RecipientExists, out.RecipientLamports, out.RecipientOwner = true, r.Lamports, r.Owner
	}
	return out, nil
}

// errOneAnswer reports that only one endpoint answered when all were asked about a nullifier.
var errOneAnswer = fmt.Errorf("%w: one endpoint reports that a note is spent, and no other endpoint answered", onchain.ErrUnavailable)

// Spent asks all endpoints about a nullifier that one endpoint has reported as spent. A nullifier
// is spent when its account exists and belongs to the program. Spent returns true when all
// endpoints that answer report the nullifier as spent, or only one endpoint is configured. It
// returns false when one of them reports the opposite, for example because that endpoint is behind
// or has lost the account. Spent fails with chain_unavailable when only one of several endpoints
// answers: it may be the one that reported the nullifier as spent before.
func (p *PoolReader) Spent(ctx context.Context, nullifier [32]byte) (bool, error) {
	if p.allEndpoints == nil {
		return true, nil
	}
	key, _, err := p.pool.Nullifier(nullifier)
	if err != nil {
		return false, fmt.Errorf("derive nullifier address: %w", err)
	}
	reported := p.allEndpoints(ctx, key)
	for _, t := range reported {
		if t.Account == nil || !t.Account.Owner.Equals(p.pool.Profile.ProgramID) {
			return false, nil
		}
	}
	if len(reported) < 2 {
		return false, unavailable(errOneAnswer)
	}
	return true, nil
}
