package chain

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// hashLife is the number of blocks after its own in which a blockhash can be named (Agave).
	hashLife = 150
	// nearSlots is how many slots apart two blocks may be for their heights to corroborate
	// each other, and sayingAge is the greatest age of a report that is used for that.
	nearSlots = 64
	sayingAge = 30 * time.Second
	// agreedAge is the age from which the agreed height is asked for again.
	agreedAge = 5 * time.Second
	// aloneAfter is how long no second endpoint may corroborate anything before a single
	// one is believed: the others are away.
	aloneAfter = time.Minute
	// unwantedAfter is the time after which a second endpoint counts as no longer wanted:
	// held submissions are searched once a minute.
	unwantedAfter = 90 * time.Second
	// hashSlotDoubt is by how many slots a blockhash may be newer than the slot that its
	// endpoint reported.
	hashSlotDoubt = 32
	// maxFinality is how many finalized blocks of an endpoint are remembered: twice the
	// number needed for an honest endpoint.
	maxFinality = 256
)

// block is a block of the chain, by slot and block height.
type block struct{ slot, height uint64 }

// tip is the newest block of the commitment at an endpoint.
func tip(ctx context.Context, at askedEndpoint, commitment onchain.Commitment) (block, error) {
	t, err := at.Newest(ctx, commitment)
	return block{t.Slot, t.Height}, err
}

// agreement says that the block height at a slot is from low to high. From one slot to
// the next the height grows by one, or by none when the slot is skipped, so an agreement
// bounds the height at every other slot, for good.
type agreement struct{ slot, low, high uint64 }

// between gives the lowest and the highest possible height at a slot.
func (a agreement) between(slot uint64) (least, most uint64) {
	if slot >= a.slot {
		return a.low, a.high + (slot - a.slot)
	}
	return a.low - min(a.low, a.slot-slot), a.high
}

// outside returns by how much a block's height is above the most or below the least.
func (a agreement) outside(b block) (above, below uint64) {
	least, most := a.between(b.slot)
	return b.height - min(b.height, most), least - min(least, b.height)
}

// agreement is the block's height as one endpoint alone reports it.
func (b block) agreement() agreement { return agreement{b.slot, b.height, b.height} }

// with combines two endpoints' blocks that corroborate each other; one of the two may lie.
func (b block) with(other block) agreement {
	if b.slot < other.slot {
		b, other = other, b
	}
	return agreement{b.slot, min(b.height, other.height), max(b.height, other.height+(b.slot-other.slot))}
}

// heights is what endpoints report of block heights. Two that corroborate each other make
// an agreement, and a height outside it is not believed. So no single answer, except the
// first, decides how long a blockhash lives.
type heights struct {
	slack uint64

	mu      sync.Mutex
	reports []heightReport // by endpoint
	// agreed is the newest agreement, made at at; upheld is the last time that an answer
	// was within it. All are zero before there is one.
	agreed     agreement
	at, upheld time.Time
	asked      time.Time // when others were last asked
	// alone is the time since which no second endpoint has corroborated a search, wanted
	// the last time that one was wanted; zero while one does.
	alone, wanted time.Time
}

// The two ways in which an endpoint reports a height.
const (
	byBlockhash = iota
	byEpochInfo
	ways
)

// heightReport is the newest block that an endpoint reported in each way, and its
// finalized ones.
type heightReport struct {
	newest [ways]struct {
		block block
		at    time.Time
	}
	final []finality // oldest first
}

// finality is a finalized block that an endpoint reported at a time, when none of its
// blocks was higher than most.
type finality struct {
	block
	most uint64
	at   time.Time
}

// observe records an endpoint's report of a block, and returns by how much its height is
// above or below what is possible: by the agreement or, before there is one, by the same
// endpoint's own reports. against is another endpoint that contradicts it, -1 for none.
func (h *heights) observe(i, way int, b block, now time.Time) (above, below uint64, against int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known() && now.Sub(h.upheld) > aloneAfter {
		h.agreed, h.at = agreement{}, time.Time{} // an agreement that no endpoint upholds any more was wrong
	}
	defer func() {
		// A refused report is not stored, unless it may show that the blockhash was wrong.
		if (above == 0 && below == 0) || (way == byEpochInfo && !h.known()) {
			h.reports[i].newest[way].block, h.reports[i].newest[way].at = b, now
		}
	}()
	bearer, against := h.other(i, b, now)
	if bearer != nil {
		h.agreed, h.at, h.upheld = b.with(*bearer), now, now
		return 0, 0, -1
	}
	for _, known := range h.bounds(i, now) {
		a, u := known.outside(b)
		above, below = max(above, a-min(a, h.slack)), max(below, u-min(u, h.slack))
	}
	if h.known() && above == 0 && below == 0 {
		h.upheld, against = now, -1
	}
	return above, below, against
}

// other finds a block of another endpoint that corroborates b, or else returns as against
// an endpoint that contradicts it.
func (h *heights) other(i int, b block, now time.Time) (bearer *block, against int) {
	against = -1
	for j := range h.reports {
		for _, said := range h.reports[j].newest {
			if j == i || said.at.IsZero() || now.Sub(said.at) > sayingAge || apart(b.slot, said.block.slot) > nearSlots {
				continue
			}
			if above, below := said.block.agreement().outside(b); max(above, below) <= h.slack {
				return &said.block, -1
			}
			against = j
		}
	}
	return nil, against
}

// bounds are the agreement, if there is one, and the endpoint's own recent reports.
func (h *heights) bounds(i int, now time.Time) (out []agreement) {
	if h.known() {
		out = append(out, h.agreed)
	}
	for _, said := range h.reports[i].newest {
		if !said.at.IsZero() && now.Sub(said.at) <= sayingAge {
			out = append(out, said.block.agreement())
		}
	}
	return out
}

func apart(a, b uint64) uint64 { return max(a, b) - min(a, b) }

func (h *heights) known() bool { return h.agreed != agreement{} }

// due reports whether the caller has to ask other endpoints now; first says that they
// have not agreed yet.
func (h *heights) due(now time.Time) (due, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first = !h.known()
	if now.Sub(h.at) < agreedAge || now.Sub(h.asked) < agreedAge {
		return false, first
	}
	h.asked = now
	return true, first
}

// agreedOn gives the newest agreement; false before there is one.
func (h *heights) agreedOn() (agreement, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.agreed, h.known()
}

// finalized records a finalized block that the endpoint reported when it had reached the
// slot tip. It returns the slot and the time before which no blockhash can be named any
// more, by this endpoint's reports alone: the block of such a blockhash is not higher than
// one that the endpoint has since passed by more than hashLife. The last valid heights
// recorded with the blockhashes do not matter.
func (h *heights) finalized(i int, b block, tip uint64, now time.Time) (expired uint64, before time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.reports[i]
	if n := len(s.final); n > 0 {
		if above, below := s.final[n-1].agreement().outside(b); max(above, below) > h.slack {
			s.final = nil // another story
		}
	}
	if n := len(s.final); n == 0 || b.height >= s.final[n-1].height+4 {
		s.final = append(s.final, finality{b, b.height + tip - min(tip, b.slot), now})
	}
	useful := 0 // entries before it add nothing
	for k, f := range s.final {
		if f.height+hashLife < b.height {
			expired = f.slot - min(f.slot, hashSlotDoubt)
		}
		// Twice hashLife: the endpoint of the blockhash may have been ahead by that much.
		if f.most+2*hashLife < b.height {
			before, useful = f.at, k
		}
	}
	s.final = s.final[max(useful, len(s.final)-maxFinality):]
	return expired, before
}

// seconded records whether a second endpoint corroborated a search. It reports whether one
// endpoint is enough, because none has for so long although it was asked repeatedly.
func (h *heights) seconded(yes bool, now time.Time) (enough bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if yes {
		h.alone = time.Time{}
		return true
	}
	if h.alone.IsZero() || now.Sub(h.wanted) > unwantedAfter {
		h.alone = now
	}
	h.wanted = now
	return now.Sub(h.alone) >= aloneAfter
}

// contradiction is the error for a block height that is impossible.
func contradiction(method, format string, args ...any) error {
	return &onchain.Unavailable{Method: method, Kind: onchain.KindContradiction, Detail: fmt.Sprintf(format, args...)}
}

// refuted counts a height that is not used, unless disputed has counted it.
func (e *Endpoints) refuted(i, against int) {
	if against < 0 {
		e.contradicted(e.all[i], nil)
	}
}

// disputed records that two endpoints contradict each other and that it is not known which
// one is wrong; against is -1 for none.
func (e *Endpoints) disputed(i, against int) {
	if against < 0 {
		return
	}
	for _, ep := range []*endpoint{e.all[i], e.all[against]} {
		ep.mu.Lock()
		ep.lastError, ep.errorAt = onchain.KindContradiction, e.now()
		ep.mu.Unlock()
	}
	e.dispute(e.all[i], e.all[against])
}
