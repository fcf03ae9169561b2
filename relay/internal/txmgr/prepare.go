package txmgr

import (
	"context"
	"errors"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// transaction is a draft whose payer is chosen and whose costs are known. Its signature makes it an
// attempt.
type transaction struct {
	j     *Job
	draft *Draft
	payer Payer
	// compute has the format, the price of a compute unit and the limits. The limit of compute
	// units is the learned one until the simulation sets both limits.
	compute shieldpool.Compute
	// lane is the lane that the tip in compute is for; "" for none.
	lane string
	// rent is the cost of the accounts that the transaction creates, in lamports.
	rent uint64
	// secondLeg is what a swap's second leg may cost; reserved is the payer's reservation
	// for the transaction. Both are in lamports.
	secondLeg, reserved uint64
	// simulatedBy is the endpoint that ran the simulation, which ended at simulatedAt.
	simulatedBy string
	simulatedAt time.Time
	// endAllowance reports to the caps whether the transaction may have been recorded.
	endAllowance func(mayBeRecorded bool)
}

// shape is the transaction's kind for compute limits.
func (t *transaction) shape() shieldpool.Kind { return shapeOf(t.j.Kind, t.draft.Purpose) }

func shapeOf(k shieldpool.Kind, p Purpose) shieldpool.Kind {
	if p == PurposeTransact {
		return k
	}
	return shieldpool.Kind(p)
}

// prepare chooses price and tip, checks the caps, and reserves the cost of the transaction with a
// payer. It drops the tip if the cost with the tip cannot be reserved.
func (m *Manager) prepare(ctx context.Context, j *Job, d *Draft) (*transaction, error) {
	price := m.price.escalated(m.price.current(ctx, m.Chain, m.Writable), j.offeredInVain())
	t := &transaction{j: j, draft: d, endAllowance: func(bool) {}}
	t.compute = shieldpool.Compute{Format: d.Format, Limit: m.compute.units.current(t.shape()), Price: price}
	if m.BaseFee != nil {
		t.compute.Base = m.BaseFee()
	}
	t.lane, t.compute.Tip = m.chooseLane(j, d)
	if err := m.checkEarly(t); err != nil {
		return nil, err
	}
	if t.lane != "" && m.reserveWithTip(ctx, t) {
		return t, nil
	}
	return t, m.reserve(ctx, t)
}

// reserve checks the caps, and reserves the cost of the transaction with a payer.
func (m *Manager) reserve(ctx context.Context, t *transaction) error {
	j, d := t.j, t.draft
	rent := m.Rent() // Known and Upper replace a rate that is not known by the highest one
	cost := t.compute.Fee() + t.compute.Tip.Lamports
	t.rent = d.Creates.Rent(rent.Known())
	// Once the first leg landed, the swap's lamports belong to the recipient, so no cap may
	// stop the second leg. The caps therefore check the cost of both legs before the first, at
	// today's price and with the tip that is usual.
	if d.SecondLeg != nil {
		second := t.compute
		second.Limit = m.compute.units.current(shieldpool.Kind(PurposeExecute))
		_, tip := m.chooseLane(&Job{}, &Draft{})
		t.secondLeg = d.SecondLeg.Rent(rent.Known()) + second.Fee() + tip.Lamports
	}
	if !d.EndsWork {
		done, err := m.Spending.Allow(ctx, j.Kind == shieldpool.KindTransfer, t.rent+cost+t.secondLeg)
		if err != nil {
			return Refused(j, err)
		}
		t.endAllowance = done
	}
	// The reservation uses the upper bound, because the rate of rent may rise before the
	// transaction lands.
	t.reserved = d.Creates.Rent(rent.Upper()) + d.Closes.Rent(rent.Upper()) + cost
	var err error
	if t.payer, err = m.Payers.Pick(ctx, t.reserved, d.EndsWork); err != nil {
		t.endAllowance(false)
		if errors.Is(err, ErrSignerUnavailable) {
			m.unsigned.Store(t.reserved)
		}
		return Refused(j, err)
	}
	return nil
}

// reservation is an amount that is reserved with a payer for an attempt.
type reservation struct {
	signature solana.Signature
	payer     solana.PublicKey
	lamports  uint64
}

// releaseReservations ends the reservations of attempts for which ended returns true.
func (m *Manager) releaseReservations(j *Job, ended func(solana.Signature) bool) {
	var remaining []reservation
	for _, r := range j.reserved {
		if ended(r.signature) {
			m.Payers.Release(r.payer, r.lamports)
		} else {
			remaining = append(remaining, r)
		}
	}
	j.reserved = remaining
}
