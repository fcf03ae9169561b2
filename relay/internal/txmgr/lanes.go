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
	// MinTip is the lowest tip, in lamports. It doubles with each tip of the job that was in vain, up to
	// MaxTip.
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

// expiries counts the job's attempts that expired, and those among them that paid a tip: nothing
// else about a transaction tells as surely that it was sent by too few ways, or paid too little. One
// that preflight rejected was not sent on, and does not count.
func (j *Job) expiries() (expired, tipped int) {
	for _, a := range j.Dead {
		if a.Paid == 0 && !a.Rejected {
			expired++
			if a.Tip > 0 {
				tipped++
			}
		}
	}
	return expired, tipped
}

// chooseLane returns the lane for the next attempt of a job, and its tip; "" and no tip if the
// attempt is not urgent and no lane takes all transactions. The lane that landed most lately comes
// first. Each attempt that expired moves the job on to the next lane, and doubles the tip if it had
// paid one.
func (m *Manager) chooseLane(j *Job, d *Draft) (lane string, tip shieldpool.Tip) {
	expired, tipped := j.expiries()
	usable := slices.Clone(m.Lanes)
	if expired == 0 && !d.Urgent {
		usable = slices.DeleteFunc(usable, func(l Lane) bool { return !l.Always })
	}
	if len(usable) == 0 {
		return "", shieldpool.Tip{}
	}
	slices.SortStableFunc(usable, func(a, b Lane) int {
		return cmp.Compare(m.results.landedShare(b.Name), m.results.landedShare(a.Name))
	})
	l := usable[expired%len(usable)]
	account := l.Accounts[(int(j.ID[len(j.ID)-1])+expired)%len(l.Accounts)]
	return l.Name, shieldpool.Tip{To: account, Lamports: doubled(l.MinTip, tipped, l.MaxTip)}
}

// maxTip is the most that one attempt may pay as a tip, in lamports.
func (m *Manager) maxTip() (most uint64) {
	for _, l := range m.Lanes {
		most = max(most, l.MaxTip)
	}
	return most
}

// hasRoom reports whether the transaction is small enough together with its tip. A draft that
// cannot be built at all is told when the attempt is made.
func (t *transaction) hasRoom() bool {
	anyPayer := solana.PublicKey{0: 0xfe} // the size is the same for every payer
	tx, err := t.draft.Build(anyPayer, t.compute, solana.Hash{})
	if err != nil {
		return false
	}
	tx.Signatures = make([]solana.Signature, tx.Message.Header.NumRequiredSignatures)
	raw, err := tx.MarshalBinary()
	return err == nil && len(raw) <= t.compute.Format.MaxSize() && len(tx.Message.AccountKeys) <= shieldpool.MaxAddresses
}

// dropTip makes the transaction one without a lane.
func (t *transaction) dropTip() { t.lane, t.compute.Tip = "", shieldpool.Tip{} }

// classOf returns the class of the failure of an attempt. If the attempt pays a tip, a failure that
// only the tip can have caused is transient: the next attempt is simulated with its tip, and pays
// none if it fails.
func (m *Manager) classOf(a *Attempt, err *shieldpool.TransactionError) shieldpool.Class {
	class := m.Class(a.Purpose, a.Format(), err)
	if a.Tip > 0 && (class == shieldpool.ClassRecipientRent || class == shieldpool.ClassBug) {
		return shieldpool.ClassTransient
	}
	return class
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
