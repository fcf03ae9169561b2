package chain

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// defaultMaxLag is the default of EndpointsOptions.MaxLag: 10 slots, 2 to 4 seconds.
	defaultMaxLag = 10
	// answerMaxAge is how long an answer shows the endpoint's position. It is also how long the
	// estimate of the chain's slot stays valid after the last answer that was near the estimate.
	answerMaxAge = 30 * time.Second
	// maxLead is the number of slots that an answer may be ahead of the estimate, because a
	// processed slot is some slots ahead of the confirmed ones. If only one endpoint is configured,
	// maxLeadAlone applies, because no other endpoint can confirm its answer.
	maxLead, maxLeadAlone = 64, 1000
	// initialRate is the number of slots a second that is assumed at first. The measurement takes
	// at least rateWindow. Until then the chain may run at up to maxInitialRate, the rate of a
	// local chain.
	initialRate, maxInitialRate = 5.0, 50.0
	rateWindow                  = 2 * time.Second
	// jumpAcceptedAfter is how long the only configured endpoint has to keep reporting impossible
	// slots before they are accepted.
	jumpAcceptedAfter = 2 * time.Second
	// maxSlot is above the slot of any chain: a higher slot is refused. Additions to it do not
	// overflow.
	maxSlot = 1 << 62
)

// slotAgreement tracks the newest confirmed slot of the chain, and how many slots each endpoint is
// behind. It estimates the chain's slot: the last agreed slot, plus the slots that have probably
// passed since then. An endpoint's slot counts when a second endpoint reports a slot near it, or
// when the estimate is near it. When two endpoints differ, the estimate shows whether one is ahead
// of the chain or the other is behind. Safe for concurrent use.
type slotAgreement struct {
	// tolerance is the greatest distance in slots at which two endpoints agree.
	tolerance float64

	mu  sync.Mutex
	all []slotReport
	// slot is the agreed slot, and at is the time of the agreement. confirmedAt is when an endpoint
	// was last near the estimate. All are zero before two endpoints have agreed.
	slot            float64
	at, confirmedAt time.Time
	firstAnswerAt   time.Time // when the first endpoint answered
	// pairSlot is the slot that two endpoints had reached at pairAt. Since then, a single endpoint
	// may have lowered the estimate.
	pairSlot float64
	pairAt   time.Time
	// rate is the number of slots a second. The present measurement began at rateSince, when the
	// agreed slot was rateSlot and the highest reported slot was rateNewest.
	rate                 float64
	measured             bool
	rateSlot, rateNewest float64
	rateSince            time.Time
}

// slotReport is an endpoint's position.
type slotReport struct {
	highest    uint64 // the highest slot that counts
	highestAt  time.Time
	reported   uint64 // the slot of the newest answer, whether it counts or not
	reportedAt time.Time
	// refused means that the slot in reported is impossible. The fields reported and reportedAt are
	// then from the first of several consistent impossible answers.
	refused      bool
	lastPossible uint64 // the slot of the newest possible answer
	lag          uint64
	lagAt        time.Time
}

// newSlotAgreement makes a slotAgreement of n endpoints, which agree when they are at most
// tolerance slots apart.
func newSlotAgreement(n int, tolerance uint64) *slotAgreement {
	return &slotAgreement{all: make([]slotReport, n), tolerance: float64(tolerance), rate: initialRate}
}

// Best returns the newest slot that counts; 0 when none is known. While the chain's position is
// unknown, Best returns the lowest slot of any endpoint, because any higher one may be wrong.
func (f *slotAgreement) Best(now time.Time) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.best(now)
}

func (f *slotAgreement) best(now time.Time) (best uint64) {
	known, first := f.positionKnown(now), true
	for _, p := range f.all {
		switch {
		case p.highestAt.IsZero() || now.Sub(p.highestAt) > answerMaxAge:
		case known && float64(p.highest) <= f.expected(now)+f.tolerance:
			best = max(best, p.highest)
		case !known && (first || p.highest < best):
			best, first = p.highest, false
		}
	}
	return best
}

// Observe records the slot of an answer of endpoint i. best is what Best returned when the call
// began, so the endpoint is behind by at least the difference between best and slot. Observe
// returns false for a slot that the chain cannot have reached; the answer must then not be used.
func (f *slotAgreement) Observe(i int, slot, best uint64, now time.Time) (possible bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.firstAnswerAt.IsZero() {
		f.firstAnswerAt = now
	}
	if slot > maxSlot {
		return false
	}
	possible = f.checkAndRecord(i, float64(slot), now)
	p := &f.all[i]
	if repeated := p.refused && f.continues(p, float64(slot), now); possible || !repeated {
		p.reported, p.reportedAt = slot, now
	}
	if p.refused = !possible; p.refused {
		return false
	}
	if slot >= p.highest || now.Sub(p.highestAt) > answerMaxAge || f.positionKnown(now) && float64(p.highest) > f.expected(now)+f.tolerance {
		p.highest, p.highestAt = slot, now
	}
	p.recordLag(slot, best, now)
	return true
}

// ObserveBehind records the slot of endpoint i when a call failed because the endpoint is behind.
// best is as in Observe.
func (f *slotAgreement) ObserveBehind(i int, slot, best uint64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[i].recordLag(slot, best, now)
}

func (p *slotReport) recordLag(slot, best uint64, now time.Time) {
	p.lastPossible, p.lagAt, p.lag = slot, now, 0
	if best > slot {
		p.lag = best - slot
	}
}

// Possible reports whether the chain may have reached the slot. Use it for slots that do not show
// how far the endpoint is behind, such as processed slots.
func (f *slotAgreement) Possible(slot uint64, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slot <= maxSlot && (len(f.all) == 1 || !f.positionKnown(now) || float64(slot) <= f.limit(now))
}

// SlotIsOld reports whether, at the given time, the chain was past the slot by more than half the
// tolerance. The tolerance is halved, because an endpoint that lags and answers alone lowers the
// estimate, so its lag seems smaller than it is. While the chain's position is unknown, SlotIsOld
// reports whether the chain may have been that far past the slot.
func (f *slotAgreement) SlotIsOld(slot uint64, at time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	threshold := float64(slot) + f.tolerance/2
	if f.positionKnown(at) {
		return threshold < f.expected(at)
	}
	return slices.ContainsFunc(f.all, func(p slotReport) bool {
		return !p.reportedAt.IsZero() && at.Sub(p.reportedAt) <= answerMaxAge && threshold < float64(p.reported)
	})
}

// HighestIfUnknown returns the highest slot that an endpoint reported recently, or the estimate if
// that is higher. It returns 0 while the chain's position is known, and when only one endpoint is
// configured.
func (f *slotAgreement) HighestIfUnknown(now time.Time) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 1 || f.positionKnown(now) {
		return 0
	}
	var highest uint64
	if !f.confirmedAt.IsZero() {
		highest = uint64(max(f.expected(now), 0))
	}
	for _, p := range f.all {
		if !p.reportedAt.IsZero() && now.Sub(p.reportedAt) <= answerMaxAge {
			highest = max(highest, p.reported)
		}
	}
	return highest
}

// Corroborated reports whether the chain has reached the slot, according to the estimate. While the
// chain's position is unknown, two endpoints have to have reached the slot, because a single one
// may lie. A single endpoint suffices when no other is configured, or no other has answered for a
// while.
func (f *slotAgreement) Corroborated(slot uint64, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(f.all) == 1:
		return true
	case f.positionKnown(now):
		return float64(slot) <= f.expected(now)+f.tolerance
	}
	answering, reached := 0, 0
	for _, p := range f.all {
		if p.reportedAt.IsZero() || now.Sub(p.reportedAt) > answerMaxAge {
			continue
		}
		answering++
		if float64(slot) <= float64(p.reported)+f.rate*now.Sub(p.reportedAt).Seconds() {
			reached++
		}
	}
	return reached > 1 || answering == 1 && now.Sub(f.firstAnswerAt) > answerMaxAge
}

// checkAndRecord checks a slot against the other endpoints and the estimate, and updates the
// estimate.
func (f *slotAgreement) checkAndRecord(i int, slot float64, now time.Time) (possible bool) {
	projected, reported, agreed := f.findAgreeing(i, slot, now)
	expected, low, high := f.expected(now), min(slot, projected), max(slot, projected)
	switch {
	case agreed && (!f.positionKnown(now) || !f.measured):
		f.recordAgreement(low, max(slot, reported), now)
		return true
	case agreed:
		// When two endpoints diverge, the estimate follows the one that is near it. Two endpoints
		// that lag together do not change an estimate that a third endpoint confirms.
		if high >= expected-f.tolerance {
			f.recordAgreement(max(low, min(expected, high)), max(slot, reported), now)
		}
		return true
	case !f.positionKnown(now):
		return true
	case slot >= expected-f.tolerance && slot <= expected+f.tolerance:
		// A single endpoint may slow the estimate down a little, but never speeds it up.
		slowest := f.slot + 0.8*f.rate*now.Sub(f.at).Seconds()
		f.slot, f.at, f.confirmedAt = min(expected, max(slot, slowest)), now, now
		return true
	default:
		return slot <= f.limit(now)
	}
}

// findAgreeing looks for other endpoints that are near the slot. The result reported is the highest
// slot that they reported, and projected is the highest slot that they should have reached by now.
// If only one endpoint is configured, its slot agrees with its own earlier report, unless the slot
// has gone back. If the earlier report was refused, they agree only after jumpAcceptedAfter.
func (f *slotAgreement) findAgreeing(i int, slot float64, now time.Time) (projected, reported float64, ok bool) {
	for j, p := range f.all {
		if p.reportedAt.IsZero() || now.Sub(p.reportedAt) > answerMaxAge {
			continue
		}
		if j == i && (len(f.all) > 1 || slot < float64(p.highest)-f.tolerance || p.refused && now.Sub(p.reportedAt) < jumpAcceptedAfter) {
			continue
		}
		if f.continues(&p, slot, now) {
			reported = max(reported, float64(p.reported))
			projected, ok = max(projected, float64(p.reported)+f.rate*now.Sub(p.reportedAt).Seconds()), true
		}
	}
	return projected, reported, ok
}

// continues reports whether the slot fits the endpoint's last report: it is between the reported
// slot and the slot that the endpoint should have reached by now, within the tolerance.
func (f *slotAgreement) continues(p *slotReport, slot float64, now time.Time) bool {
	previous, moved := float64(p.reported), f.rate*now.Sub(p.reportedAt).Seconds()
	return slot >= previous-f.tolerance && slot <= previous+moved+f.tolerance
}

// recordAgreement records the slot on which two endpoints agree, and measures the chain's speed.
// The parameter newest is the higher of their two reports. While the chain stands still, its speed
// is not measured. After a standstill the slot may jump, so the effect of one measurement is
// limited.
func (f *slotAgreement) recordAgreement(slot, newest float64, now time.Time) {
	f.slot, f.at, f.confirmedAt, f.pairSlot, f.pairAt = slot, now, now, slot, now
	took := now.Sub(f.rateSince)
	switch {
	case f.rateSince.IsZero() || took > 2*answerMaxAge || slot < f.rateSlot || took >= rateWindow && newest <= f.rateNewest:
		f.rateSlot, f.rateNewest, f.rateSince = slot, newest, now
	case took >= rateWindow:
		rate := (slot - f.rateSlot) / took.Seconds()
		if f.measured {
			rate = 0.75*f.rate + 0.25*min(rate, 2*max(f.rate, initialRate))
		}
		f.rate, f.measured, f.rateSlot, f.rateNewest, f.rateSince = rate, true, slot, newest, now
	}
}

// positionKnown reports whether the estimate is valid: an endpoint was near it recently.
func (f *slotAgreement) positionKnown(now time.Time) bool {
	return !f.confirmedAt.IsZero() && now.Sub(f.confirmedAt) <= answerMaxAge
}

// expected returns the estimate of the chain's slot.
func (f *slotAgreement) expected(now time.Time) float64 {
	return f.slot + f.rate*now.Sub(f.at).Seconds()
}

// limit returns the highest slot that the chain can have reached.
func (f *slotAgreement) limit(now time.Time) float64 {
	extraRate := max(f.rate/2, initialRate)
	if !f.measured {
		extraRate = maxInitialRate
	}
	// Since two endpoints last agreed, the chain may have run faster than the measured rate.
	most := max(f.expected(now)+extraRate*now.Sub(f.at).Seconds(), f.pairSlot+1.25*f.rate*now.Sub(f.pairAt).Seconds()) + f.tolerance
	if len(f.all) == 1 {
		return most + maxLeadAlone
	}
	return most + maxLead
}

// Lag returns the number of slots that endpoint i was behind when it last answered, and the time
// of that answer; the zero time when it never answered.
func (f *slotAgreement) Lag(i int) (lag uint64, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[i].lag, f.all[i].lagAt
}

// Slot returns the slot of endpoint i when it last answered.
func (f *slotAgreement) Slot(i int) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[i].lastPossible
}

// checkSlot records the slot of an answer, and refuses the answer when the chain cannot have
// reached that slot. It checks an unconfirmed slot, but does not record it.
func (e *Endpoints) checkSlot(ep *endpoint, method string, slot, best uint64, unconfirmed bool) error {
	now := e.now()
	if unconfirmed {
		if e.slots.Possible(slot, now) {
			return nil
		}
	} else if e.slots.Observe(ep.index, slot, best, now) {
		return nil
	}
	e.recordContradiction(ep, nil)
	e.slotRefusedAt.Store(now.UnixNano())
	return &onchain.Unavailable{
		Method: method, Endpoint: ep.name, Kind: onchain.KindContradiction,
		Detail: fmt.Sprintf("its answer is of slot %d, and no other endpoint comes near: the chain is at %d", slot, e.slots.Best(now)),
	}
}
