package txmgr

import (
	"cmp"
	"slices"

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

// inVain counts the job's attempts that were in vain: in all, those that offered a tip, and those of
// each lane. An attempt was in vain if it expired, or if it is followed by an early attempt. Nothing
// else about a transaction tells as surely that it was sent by too few ways, or paid too little. One
// that preflight rejected is not sent again, and does not count.
func (j *Job) inVain() (attempts, tipped int, onLane map[string]int) {
	onLane = map[string]int{}
	for _, a := range slices.Concat(j.Dead, j.Live) {
		if a.Paid > 0 || a.Rejected {
			continue
		}
		attempts++
		onLane[a.Lane]++
		if a.Tip > 0 {
			tipped++
		}
	}
	return attempts, tipped, onLane
}

// offeredInVain returns the dearest price of a compute unit, in micro-lamports, that the job's attempts
// in vain offered; nil if there was none.
func (j *Job) offeredInVain() (dearest *uint64) {
	for _, a := range slices.Concat(j.Dead, j.Live) {
		if a.Paid > 0 || a.Rejected {
			continue
		}
		if price := shieldpool.PriceOf(a.Raw); dearest == nil || price > *dearest {
			dearest = &price
		}
	}
	return dearest
}

// chooseLane returns the lane for the next attempt of a job, and its tip; "" and no tip if the
// attempt is not urgent and no lane takes all transactions, or no lane is usable. A lane that just
// refused several transactions in a row is not usable: see chain.Endpoints.LaneUsable. The lane on
// which the fewest attempts of the job were in vain comes first, and of several the one that landed the
// largest share of all attempts lately. Each tip that the job offered in vain doubles the next.
func (m *Manager) chooseLane(j *Job, d *Draft) (lane string, tip shieldpool.Tip) {
	attempts, tipped, onLane := j.inVain()
	urgent := d.Urgent || attempts > 0
	usable := slices.DeleteFunc(slices.Clone(m.Lanes), func(l Lane) bool { return !l.Always && !urgent || !m.Chain.LaneUsable(l.Name) })
	if len(usable) == 0 {
		return "", shieldpool.Tip{}
	}
	slices.SortStableFunc(usable, func(a, b Lane) int {
		return cmp.Or(onLane[a.Name]-onLane[b.Name], cmp.Compare(m.results.landedShare(b.Name), m.results.landedShare(a.Name)))
	})
	l := usable[0]
	account := l.Accounts[(int(j.ID[len(j.ID)-1])+attempts)%len(l.Accounts)]
	return l.Name, shieldpool.Tip{To: account, Lamports: doubled(l.MinTip, tipped, l.MaxTip)}
}
