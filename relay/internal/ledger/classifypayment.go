package ledger

import (
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// newEntry classifies a payment. attempt is nil when the database has none. rate is the chain's
// rate of rent, 0 when it is unknown. When another account paid the fee and the payer's balance did
// not change, ok is false: such a transaction gets no entry, because anybody may name the payer's
// address in a transaction.
func newEntry(p *onchain.Payment, payer solana.PublicKey, attempt *Attempt, rate shieldpool.Rent, now time.Time) (e Entry, ok bool) {
	e = Entry{Signature: p.Signature, Payer: payer, Slot: p.Slot, At: p.At, BalanceAfter: p.After}
	if e.At.IsZero() {
		e.At = now
	}
	if p.FeePayer == payer {
		e.Fee = min(p.SignatureFees, p.Fee)
		e.PriorityFee = p.Fee - e.Fee
	}
	lost := int64(p.Before) - int64(p.After) //nolint:gosec // any sum of lamports fits 63 bits
	lost -= int64(e.Fee + e.PriorityFee)     //nolint:gosec // as above
	switch {
	case p.FeePayer != payer && lost == 0:
		return e, false
	case p.FeePayer != payer && lost < 0 && attempt.isSweep():
		e.Kind, e.Moved = KindSweep, lost
	case p.FeePayer != payer && lost < 0:
		e.Kind, e.Received = KindReceived, uint64(-lost)
	case p.FeePayer != payer || attempt == nil:
		e.Kind, e.Other = KindUnknown, lost
	case p.Failed:
		e.Kind, e.Other = KindFailed, lost
	case attempt.isSweep():
		e.Kind, e.Moved = KindSweep, int64(attempt.Moved) //nolint:gosec // any sum of lamports fits 63 bits
		e.Other = lost - e.Moved
	default:
		e.Kind, e.Tip = Kind(attempt.Kind), attempt.Tip
		lost -= int64(e.Tip) //nolint:gosec // any sum of lamports fits 63 bits
		e.Amounts = e.attributeLoss(lost, rentPaid(p, rate), rate, attempt.Purpose)
	}
	if attempt != nil && !attempt.isSweep() {
		e.Submission = &attempt.Submission
	}
	return e, true
}

// rentPaid is the rent that the payer paid for new accounts. It is at most the minimum balance
// of these accounts at the network's highest rate. Anything that was paid beyond that is not
// rent.
func rentPaid(p *onchain.Payment, rate shieldpool.Rent) uint64 {
	var most uint64
	for _, size := range p.CreatedSizes {
		most += rate.Upper().Minimum(size)
	}
	return min(p.Created, most)
}

// attributeLoss divides the payer's loss beyond fees into Rent, Returned, Received and Other.
// created is the rent that the payer paid for new accounts. An execution closes the swap state and
// the accounts that the execution itself created, and the payer gets their rent back. Lamports
// that others sent to these accounts count as received, not as rent. A refund returns nothing to
// the payer, because all lamports of the swap go to the recipient's wallet.
func (a Amounts) attributeLoss(lost int64, created uint64, rate shieldpool.Rent, p txmgr.Purpose) Amounts {
	least := int64(0)
	if p == txmgr.PurposeExecute {
		least = -int64(rate.Upper().Minimum(shieldpool.SwapStateLength)) //nolint:gosec // any sum of lamports fits 63 bits
	}
	a.Rent = min(max(lost, least), int64(created)) //nolint:gosec // as above
	a.Returned = uint64(max(-a.Rent, 0))
	if remainder := lost - a.Rent; p == txmgr.PurposeExecute && remainder < 0 {
		a.Received = uint64(-remainder)
	} else {
		a.Other = remainder
	}
	return a
}

func (a *Attempt) isSweep() bool { return a != nil && Kind(a.Kind) == KindSweep }
