package chain

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// hashLife is for how many blocks after its own a blockhash can be named (Agave).
	hashLife = 150
	// nearSlots is how many slots apart two blocks may be whose heights bear each
	// other out, and sayingAge how old what an endpoint said may be for that.
	nearSlots = 64
	sayingAge = 30 * time.Second
	// agreedAge is from when on the height that endpoints agree on is asked for again.
	agreedAge = 5 * time.Second
	// aloneAfter is for how long no second endpoint may bear anything out before one is
	// believed by itself: the others are away.
	aloneAfter = time.Minute
	// unwanted is from when on a second one counts as no longer wanted: what is held is
	// looked up once a minute.
	unwantedAfter = 90 * time.Second
	// hashSlotDoubt is by how many slots a blockhash may be newer than the endpoint
	// said that gave it.
	hashSlotDoubt = 32
	// maxFinality is how many finalized blocks of an endpoint are remembered: twice what is
	// needed of one that does not lie.
	maxFinality = 256
)

// block is one of the chain's, by slot and by block height.
type block struct{ slot, height uint64 }

// tip is the newest block of the commitment at an endpoint.
func tip(ctx context.Context, at askedEndpoint, commitment onchain.Commitment) (block, error) {
	t, err := at.Newest(ctx, commitment)
	return block{t.Slot, t.Height}, err
}

// agreement is that at a slot the block height is from low to high. From one slot
// to the next the height grows by one or, when the slot is skipped, by none: so it
// bounds the height at every other slot, for good.
type agreement struct{ slot, low, high uint64 }

// between gives the least and the most that the height is at a slot.
func (a agreement) between(slot uint64) (least, most uint64) {
	if slot >= a.slot {
		return a.low, a.high + (slot - a.slot)
	}
	return a.low - min(a.low, a.slot-slot), a.high
}

// outside tells by how much a block's height is above the most or below the least.
func (a agreement) outside(b block) (above, below uint64) {
	least, most := a.between(b.slot)
	return b.height - min(b.height, most), least - min(least, b.height)
}

// agreement is what one endpoint alone says.
func (b block) agreement() agreement { return agreement{b.slot, b.height, b.height} }

// with is what two endpoints say that bear each other out, of which one may lie.
func (b block) with(other block) agreement {
	if b.slot < other.slot {
		b, other = other, b
	}
	return agreement{b.slot, min(b.height, other.height), max(b.height, other.height+(b.slot-other.slot))}
}

// heights is what endpoints say of block heights. Two that bear each other out make
// an agreement, and what is outside of it is not believed: so that no single answer,
// the first one apart, decides how long a blockhash lives.
type heights struct {
	slack uint64

	mu      sync.Mutex
	reports []heightReport // by endpoint
	// agreed is the newest agreement, at its time, and upheld the last time that an
	// answer was within it; zero before there is one.
	agreed     agreement
	at, upheld time.Time
	asked      time.Time // when others were last asked
	// alone is since when no second endpoint has borne out a search, and wanted when
	// one was last wanted; zero while one does.
	alone, wanted time.Time
}

// The two ways in which an endpoint tells of a height.
const (
	byBlockhash = iota
	byEpochInfo
	ways
)

// heightReport is the newest block that an endpoint told of in each way, and its
// finalized ones.
type heightReport struct {
	newest [ways]struct {
		block block
		at    time.Time
	}
	final []finality // oldest first
}

// finality is a finalized block that an endpoint told at a time, when no block of it
// was higher than most.
type finality struct {
	block
	most uint64
	at   time.Time
}

// observe takes into account what an endpoint says of a block, and tells by how much
// its height is above or below what can be, by the agreement or, before there is
// one, by what the same endpoint said. against is another endpoint that says
// otherwise, -1 for none.
func (h *heights) observe(i, way int, b block, now time.Time) (above, below uint64, against int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known() && now.Sub(h.upheld) > aloneAfter {
		h.agreed, h.at = agreement{}, time.Time{} // what nobody upholds any more was wrong
	}
	defer func() {
		// What is refused is refused again; unless it is what tells that a blockhash was wrong.
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

// other finds a block of another endpoint that bears b out, or else, as against,
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

// bounds are the agreement, if there is one, and what the endpoint said itself.
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

// due reports whether other endpoints have to be asked, and first that they have
// not agreed yet; then the caller asks them.
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

// finalized takes a finalized block into account that the endpoint told when it had
// come to the slot tip. It gives the slot and the time whose blockhashes can no longer be
// named by what the endpoint alone has said: of none of these can the block be higher
// than one that it has since left behind by more than hashLife. What was recorded with
// the blockhashes does not matter.
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
	useful := 0 // what came before it says no more
	for k, f := range s.final {
		if f.height+hashLife < b.height {
			expired = f.slot - min(f.slot, hashSlotDoubt)
		}
		// Twice its life: the endpoint that gave the blockhash may have been so far ahead.
		if f.most+2*hashLife < b.height {
			before, useful = f.at, k
		}
	}
	s.final = s.final[max(useful, len(s.final)-maxFinality):]
	return expired, before
}

// seconded notes whether a second endpoint bore a search out, and reports whether
// none has for so long, although it was asked again and again, that one is enough.
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

// contradiction is the error of a block height that cannot be.
func contradiction(method, format string, args ...any) error {
	return &onchain.Unavailable{Method: method, Kind: onchain.KindContradiction, Detail: fmt.Sprintf(format, args...)}
}

// refuted counts that an endpoint's height is not used, unless disputed has.
func (e *Endpoints) refuted(i, against int) {
	if against < 0 {
		e.contradicted(e.all[i], nil)
	}
}

// disputed notes that two endpoints contradict each other, of which it is not known
// who is wrong; against is -1 for none.
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
