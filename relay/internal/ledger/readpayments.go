package ledger

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/gagliardetto/solana-go"
	"golang.org/x/sync/errgroup"

	"github.com/relaypool/relaypool/relay/onchain"
)

// slot has the payer's transactions of one slot of the chain. A payment is nil when no endpoint
// knows the transaction.
type slot struct {
	signatures []solana.Signature
	payments   []*onchain.Payment
	number     uint64
}

// BlockPayments are payments that blocks show.
type BlockPayments map[solana.Signature]*onchain.Payment

// of returns the payment of a transaction in the slot; nil if a block of that slot does not show it.
func (b BlockPayments) of(signature solana.Signature, slot uint64) *onchain.Payment {
	if p := b[signature]; p != nil && p.Slot == slot {
		return p
	}
	return nil
}

// step returns the first of the slots, with at most that many payments that are not known, unless the first
// slot has more.
func (b BlockPayments) step(slots []slot, limit int) []slot {
	for i, s := range slots {
		for _, signature := range s.signatures {
			if b.of(signature, s.number) == nil {
				limit--
			}
		}
		if limit < 0 && i > 0 {
			return slots[:i]
		}
	}
	return slots
}

// withoutLast returns the slots up to the last one whose payments were all read from the chain.
func (b BlockPayments) withoutLast(slots []slot) []slot {
	for len(b) > 0 && len(slots) > 0 {
		last := slots[len(slots)-1]
		if !slices.ContainsFunc(last.signatures, func(s solana.Signature) bool { return b.of(s, last.number) != nil }) {
			break
		}
		slots = slots[:len(slots)-1]
	}
	return slots
}

// knownPayments returns the payments that are known from blocks. It returns none of the last slot, which is read
// from the chain. While the history does not add up, it returns none at all.
func (r *Reconciler) knownPayments(ctx context.Context, h *payerHistory, slots []slot) BlockPayments {
	if len(slots) < 2 || !h.gapSince.IsZero() {
		return nil
	}
	slots = slots[:len(slots)-1]
	finalized := r.Finalized(ctx, slots[len(slots)-1].number)
	var numbers []uint64
	for _, s := range slots {
		if s.number <= finalized {
			numbers = append(numbers, s.number)
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	known, err := r.Store.BlockPayments(ctx, h.payer, numbers)
	if err != nil {
		r.Log.DebugContext(ctx, "payments in blocks cannot be read; reading them from the chain", "payer", h.payer, "error", err)
	}
	return known
}

// readPayments reads the payments of slots from the chain, unless they are known. It reads all of the last slot:
// what blocks show has to chain up to what the chain says of that one. If a call fails, it returns only the
// slots before the first slot with a failed call.
func (r *Reconciler) readPayments(ctx context.Context, payer solana.PublicKey, slots []slot, known BlockPayments) ([]slot, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.Parallel)
	for i := range slots {
		slots[i].payments = make([]*onchain.Payment, len(slots[i].signatures))
	}
	firstFailed := len(slots)
	var mu sync.Mutex
	for i := range slots {
		for j, signature := range slots[i].signatures {
			if p := known.of(signature, slots[i].number); p != nil && i < len(slots)-1 {
				slots[i].payments[j] = p
				continue
			}
			group.Go(func() error {
				p, err := r.Chain.Payment(ctx, signature, payer)
				if err != nil && !errors.Is(err, onchain.ErrUnavailable) && ctx.Err() == nil {
					// The endpoints answer, but cannot decode this transaction. Anybody may
					// name a payer's address in a transaction of a version that no endpoint
					// supports. The payment is then nil, as if no endpoint knew the
					// transaction, so that the reading goes on.
					r.Log.DebugContext(ctx, "reading a transaction of a fee payer's history failed", "payer", payer, "slot", slots[i].number, "error", err)
					p, err = nil, nil
				}
				if err != nil {
					mu.Lock()
					firstFailed = min(firstFailed, i)
					mu.Unlock()
				}
				slots[i].payments[j] = p
				return err
			})
		}
	}
	err := group.Wait()
	return slots[:firstFailed], err
}

func signaturesOf(slots []slot) []solana.Signature {
	var out []solana.Signature
	for _, s := range slots {
		out = append(out, s.signatures...)
	}
	return out
}
