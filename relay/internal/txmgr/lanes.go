package txmgr

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Lane is a service that puts transactions on the chain for a tip. A transaction with a lane's tip
// goes to the submit endpoints as every other one does, and to the lane besides.
type Lane struct {
	Name string
	// Accounts receive tips; each transaction tips one of them. There is at least one.
	Accounts []solana.PublicKey
	// MinTip is a job's first tip, in lamports. Each tip in vain doubles the next, up to MaxTip.
	MinTip, MaxTip uint64
	// Always is true if all transactions pay the tip, not only urgent ones.
	Always bool
}

// maxEscalation bounds how often a price or a tip is doubled, so that doubling cannot overflow.
const maxEscalation = 20

// doubled returns an amount that was doubled n times, at most limit.
func doubled(amount uint64, n int, limit uint64) uint64 {
	for range min(n, maxEscalation) {
		if amount >= limit/2 {
			return limit
		}
		amount *= 2
	}
	return min(amount, limit)
}

// expiries counts the job's attempts that expired: in all, those that offered a tip, and those of
// each lane. Nothing else about a transaction tells as surely that it was sent by too few ways, or
// paid too little. One that preflight rejected is not sent again, and does not count.
func (j *Job) expiries() (expired, tipped int, onLane map[string]int) {
	onLane = map[string]int{}
	for _, a := range j.Dead {
		if a.Paid > 0 || a.Rejected {
			continue
		}
		expired++
		onLane[a.Lane]++
		if a.Tip > 0 {
			tipped++
		}
	}
	return expired, tipped, onLane
}

// chooseLane returns the lane for the next attempt of a job, and its tip; "" and no tip if the
// attempt is not urgent and no lane takes all transactions, or no lane is usable. The lane on which
// the fewest attempts of the job expired comes first, and of several the one that landed the largest
// share of all attempts lately. Each tip that the job offered in vain doubles the next.
func (m *Manager) chooseLane(j *Job, d *Draft) (lane string, tip shieldpool.Tip) {
	expired, tipped, onLane := j.expiries()
	urgent := d.Urgent || expired > 0
	usable := slices.DeleteFunc(slices.Clone(m.Lanes), func(l Lane) bool { return !l.Always && !urgent || !m.Chain.LaneUsable(l.Name) })
	if len(usable) == 0 {
		return "", shieldpool.Tip{}
	}
	slices.SortStableFunc(usable, func(a, b Lane) int {
		return cmp.Or(onLane[a.Name]-onLane[b.Name], cmp.Compare(m.results.landedShare(b.Name), m.results.landedShare(a.Name)))
	})
	l := usable[0]
	account := l.Accounts[(int(j.ID[len(j.ID)-1])+expired)%len(l.Accounts)]
	return l.Name, shieldpool.Tip{To: account, Lamports: doubled(l.MinTip, tipped, l.MaxTip)}
}

// hasRoom reports whether the transaction is small enough together with its tip. A draft that
// cannot be built at all is told when the attempt is made.
func (t *transaction) hasRoom() bool {
	if t.draft.Fits != nil {
		return t.draft.Fits(t.compute)
	}
	anyPayer := solana.PublicKey{0: 0xfe} // the size is the same for every payer
	tx, err := t.draft.Build(anyPayer, t.compute, solana.Hash{})
	if err != nil {
		return false
	}
	tx.Signatures = make([]solana.Signature, tx.Message.Header.NumRequiredSignatures)
	raw, err := tx.MarshalBinary()
	return err == nil && len(raw) <= t.compute.Format.MaxSize()
}

// dropTip makes the transaction one without a lane.
func (t *transaction) dropTip() { t.lane, t.compute.Tip = "", shieldpool.Tip{} }

// causedByTip reports whether an error of a transaction with a tip is that of the tip: its transfer
// failed, or left the tip's account below its minimum balance.
func causedByTip(tx *solana.Transaction, err *shieldpool.TransactionError) bool {
	last := len(tx.Message.Instructions) - 1
	switch {
	case last < 0 || err == nil:
		return false
	case err.Kind == "InstructionError":
		return err.Instruction == last
	default:
		tip := tx.Message.Instructions[last]
		return err.Kind == "InsufficientFundsForRent" && len(tip.Accounts) > 1 && err.Account == int(tip.Accounts[1])
	}
}

// failsByTip reports whether an error of a simulation is that of the transaction's tip.
func (m *Manager) failsByTip(t *transaction, failure *shieldpool.TransactionError) bool {
	tx, err := t.draft.Build(t.payer.PublicKey(), t.compute, solana.Hash{})
	return err == nil && causedByTip(tx, failure)
}

// classOf returns the class of the failure of an attempt. A failure of its tip is transient: the
// next attempt is simulated with its tip, and offers none if that fails.
func (m *Manager) classOf(a *Attempt, failure *shieldpool.TransactionError) shieldpool.Class {
	if a.Tip > 0 {
		if tx, err := solana.TransactionFromBytes(a.Raw); err == nil && causedByTip(tx, failure) {
			return shieldpool.ClassTransient
		}
	}
	return m.Class(a.Purpose, a.Format(), failure)
}

// sendLane sends an attempt to its lane, if it has one.
func (m *Manager) sendLane(ctx context.Context, a *Attempt, first bool) {
	if a.Lane != "" {
		m.Chain.SendLane(context.WithoutCancel(ctx), a.Lane, a.Raw, first)
	}
}

// laneResults keeps how large a share of the latest attempts landed, by lane; "" stands for
// attempts without one.
type laneResults struct {
	mu     sync.Mutex
	shares map[string]float64
}

// resultWeight is the weight of the newest result in a share: about the last 16 count.
const resultWeight = 1.0 / 16

// observe counts an attempt that landed, or expired.
func (r *laneResults) observe(lane string, landed bool) {
	result := 0.0
	if landed {
		result = 1
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shares == nil {
		r.shares = map[string]float64{}
	}
	share, known := r.shares[lane]
	if !known {
		share = 1
	}
	r.shares[lane] = share + (result-share)*resultWeight
}

// landedShare is the share of the lane's latest attempts that landed; 1 before the first result.
func (r *laneResults) landedShare(lane string) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if share, known := r.shares[lane]; known {
		return share
	}
	return 1
}
