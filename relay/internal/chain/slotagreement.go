package chain

import (
	"sync"
	"time"
)

const (
	// answerMaxAge is how long an answer says where its endpoint is, and how long the
	// clock says where the chain must be after nobody was there.
	answerMaxAge = 30 * time.Second
	// leeway is by how many slots an answer may be ahead of where the clock says
	// that the chain is: a processed slot is some ahead of the confirmed ones.
	// An only endpoint has more, because nobody else can say that it is right.
	leeway, leewayAlone = 64, 1000
	// firstRate is how many slots a second the chain makes, until it is measured
	// over at least rateOver; until then it may be mostRate, that of a local chain.
	firstRate, mostRate = 5.0, 50.0
	rateOver            = 2 * time.Second
	// jumpAcceptedAfter is for how long an only endpoint has to keep to a slot that the clock
	// says is not possible.
	jumpAcceptedAfter = 2 * time.Second
)

// slotAgreement is the newest confirmed slot of a chain that several endpoints tell of,
// and how far each of them is behind it. A slot counts when a second endpoint
// comes near it, or when it is where the clock says that the chain must be since
// two endpoints last agreed. So one that is ahead of the chain is told from one
// that is behind it. Safe for concurrent use.
type slotAgreement struct {
	// near is how many slots apart two endpoints may be that agree.
	near float64

	mu  sync.Mutex
	all []slotReport
	// slot was agreed on at the time at; heard is when an endpoint last was where
	// the clock has come to since then. Zero before two have agreed.
	slot      float64
	at, heard time.Time
	first     time.Time // when the first endpoint answered
	// pair is the slot that two were at at the time pairAt: one that goes on by itself
	// may have slowed the clock down since then.
	pair   float64
	pairAt time.Time
	// rate is how many slots a second the chain makes, measured since it stood at
	// from at since.
	rate     float64
	measured bool
	from     float64
	since    time.Time
}

// slotReport is where an endpoint stands.
type slotReport struct {
	high   uint64 // the highest slot that counts
	highAt time.Time
	said   uint64 // in the newest answer, whether it counts or not
	saidAt time.Time
	// refused says that it was not possible: then said is the first of those since
	// when they follow one another.
	refused bool
	last    uint64 // of the newest answer that was possible
	lag     uint64
	at      time.Time
}

// newSlotAgreement is for n endpoints, of which those agree that are up to near slots apart.
func newSlotAgreement(n int, near uint64) *slotAgreement {
	return &slotAgreement{all: make([]slotReport, n), near: float64(near), rate: firstRate}
}

// Best is the newest slot that counts; 0 when none is known. Until two endpoints
// have agreed it is the lowest that one of them is at: which one is wrong is not known.
func (f *slotAgreement) Best(now time.Time) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.best(now)
}

func (f *slotAgreement) best(now time.Time) (best uint64) {
	known, first := f.known(now), true
	for _, p := range f.all {
		switch {
		case p.highAt.IsZero() || now.Sub(p.highAt) > answerMaxAge:
		case known && float64(p.high) <= f.expected(now)+f.near:
			best = max(best, p.high)
		case !known && (first || p.high < best):
			best, first = p.high, false
		}
	}
	return best
}

// Observe takes into account that endpoint i answered from the slot, to a call that
// began when the best was known to be best: the difference is what it lacks for
// certain. It is false of a slot that the chain cannot have reached: then the
// answer is not to be used.
func (f *slotAgreement) Observe(i int, slot, best uint64, now time.Time) (possible bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first.IsZero() {
		f.first = now
	}
	possible = f.learn(i, float64(slot), now)
	p := &f.all[i]
	if again := p.refused && f.follows(p, float64(slot), now); possible || !again {
		p.said, p.saidAt = slot, now
	}
	if p.refused = !possible; p.refused {
		return false
	}
	if slot >= p.high || now.Sub(p.highAt) > answerMaxAge || f.known(now) && float64(p.high) > f.expected(now)+f.near {
		p.high, p.highAt = slot, now
	}
	p.isCurrent(slot, best, now)
	return true
}

// Behind takes into account that endpoint i says itself that it has not come
// further than the slot, to a call as Saw's.
func (f *slotAgreement) Behind(i int, slot, best uint64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[i].isCurrent(slot, best, now)
}

func (p *slotReport) isCurrent(slot, best uint64, now time.Time) {
	p.last, p.at, p.lag = slot, now, 0
	if best > slot {
		p.lag = best - slot
	}
}

// Possible reports whether the chain may have reached the slot; of a slot that
// says nothing about how far the endpoint has come, such as a processed one.
func (f *slotAgreement) Possible(slot uint64, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all) == 1 || !f.known(now) || float64(slot) <= f.limit(now)
}

// Highest is the highest slot that an endpoint has told not long ago, or that the clock
// says since two last agreed, while it is not known where the chain is; 0 while it is.
func (f *slotAgreement) Highest(now time.Time) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 1 || f.known(now) {
		return 0
	}
	var highest uint64
	if !f.heard.IsZero() {
		highest = uint64(max(f.expected(now), 0))
	}
	for _, p := range f.all {
		if !p.saidAt.IsZero() && now.Sub(p.saidAt) <= answerMaxAge {
			highest = max(highest, p.said)
		}
	}
	return highest
}

// Corroborated reports whether the chain has reached the slot by what two endpoints have
// agreed on and the clock. Of an endpoint that is the only one, or the only one to
// answer for a while, the word is all there is. Two that never agreed bear nothing out:
// one may lag, and one may lie.
func (f *slotAgreement) Corroborated(slot uint64, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(f.all) == 1:
		return true
	case f.known(now):
		return float64(slot) <= f.expected(now)+f.near
	}
	answering := 0
	for _, p := range f.all {
		if !p.saidAt.IsZero() && now.Sub(p.saidAt) <= answerMaxAge {
			answering++
		}
	}
	return answering == 1 && now.Sub(f.first) > answerMaxAge
}

// learn holds a slot against the other endpoints and the clock.
func (f *slotAgreement) learn(i int, slot float64, now time.Time) (possible bool) {
	other, agreed := f.agreed(i, slot, now)
	expected, low, high := f.expected(now), min(slot, other), max(slot, other)
	switch {
	case agreed && (!f.known(now) || !f.measured):
		f.agree(low, now)
		return true
	case agreed:
		// Of two that come apart, the clock goes with the one that keeps to it. Two
		// that are behind together move no clock that a third one keeps.
		if high >= expected-f.near {
			f.agree(max(low, min(expected, high)), now)
		}
		return true
	case !f.known(now):
		return true
	case slot >= expected-f.near && slot <= expected+f.near:
		// One alone may slow the clock down a little, and never makes it faster.
		slowest := f.slot + 0.8*f.rate*now.Sub(f.at).Seconds()
		f.slot, f.at, f.heard = min(expected, max(slot, slowest)), now, now
		return true
	default:
		return slot <= f.limit(now)
	}
}

// agreed looks for another endpoint that is near the slot, and gives where it is
// by now. An only endpoint may agree with itself when it does not go back, and
// ahead of the clock once it has kept to it for a while.
func (f *slotAgreement) agreed(i int, slot float64, now time.Time) (other float64, ok bool) {
	for j, p := range f.all {
		if p.saidAt.IsZero() || now.Sub(p.saidAt) > answerMaxAge {
			continue
		}
		if j == i && (len(f.all) > 1 || slot < float64(p.high)-f.near || p.refused && now.Sub(p.saidAt) < jumpAcceptedAfter) {
			continue
		}
		if f.follows(&p, slot, now) {
			other, ok = max(other, float64(p.said)+f.rate*now.Sub(p.saidAt).Seconds()), true
		}
	}
	return other, ok
}

// follows reports whether the slot is near where the position is by now.
func (f *slotAgreement) follows(p *slotReport, slot float64, now time.Time) bool {
	said, moved := float64(p.said), f.rate*now.Sub(p.saidAt).Seconds()
	return slot >= said-f.near && slot <= said+moved+f.near
}

// agree notes where two endpoints are, and how fast the chain came there.
func (f *slotAgreement) agree(slot float64, now time.Time) {
	f.slot, f.at, f.heard, f.pair, f.pairAt = slot, now, now, slot, now
	took := now.Sub(f.since)
	switch {
	case f.since.IsZero() || took > 2*answerMaxAge || slot < f.from:
		f.from, f.since = slot, now
	case took >= rateOver:
		rate := (slot - f.from) / took.Seconds()
		if f.measured {
			rate = 0.75*f.rate + 0.25*rate
		}
		f.rate, f.measured, f.from, f.since = rate, true, slot, now
	}
}

// known reports whether the clock says where the chain is.
func (f *slotAgreement) known(now time.Time) bool {
	return !f.heard.IsZero() && now.Sub(f.heard) <= answerMaxAge
}

// expected is where the chain is by the clock.
func (f *slotAgreement) expected(now time.Time) float64 {
	return f.slot + f.rate*now.Sub(f.at).Seconds()
}

// limit is the highest slot that is possible.
func (f *slotAgreement) limit(now time.Time) float64 {
	faster := max(f.rate/2, firstRate)
	if !f.measured {
		faster = mostRate
	}
	// Since two were there, the chain may have been faster than when it was measured.
	most := max(f.expected(now)+faster*now.Sub(f.at).Seconds(), f.pair+1.25*f.rate*now.Sub(f.pairAt).Seconds()) + f.near
	if len(f.all) == 1 {
		return most + leewayAlone
	}
	return most + leeway
}

// Lag is by how many slots endpoint i was behind when it last answered, and
// when that was; the zero time when it never did.
func (f *slotAgreement) Lag(i int) (lag uint64, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[i].lag, f.all[i].at
}

// Slot is where endpoint i stood when it last answered.
func (f *slotAgreement) Slot(i int) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[i].last
}
