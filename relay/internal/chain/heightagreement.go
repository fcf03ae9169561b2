package chain

import (
	"context"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// blockhashLifetime is the number of blocks for which a blockhash stays valid after its own
	// block (Agave).
	blockhashLifetime = onchain.BlockhashBlocks
	// nearSlots is the greatest distance in slots at which the heights of two blocks
	// corroborate each other. reportMaxAge is the age beyond which a report is no longer
	// compared with other reports.
	nearSlots    = 64
	reportMaxAge = 30 * time.Second
	// agreedMaxAge is the age of an agreement at which endpoints are asked for their heights again.
	agreedMaxAge = 5 * time.Second
)

// block is a block of the chain, by slot and block height.
type block struct{ slot, height uint64 }

// tip reads the newest block of the commitment from an endpoint.
func tip(ctx context.Context, source askedEndpoint, commitment onchain.Commitment) (block, error) {
	t, err := source.Newest(ctx, commitment)
	return block{t.Slot, t.Height}, err
}

// agreement states that the block height at a slot is between low and high. From one slot to
// the next the height grows by one, or by none when the slot is skipped. So an agreement
// bounds the height at every other slot.
type agreement struct{ slot, low, high uint64 }

// heightsAt returns the lowest and the highest possible height at a slot.
func (a agreement) heightsAt(slot uint64) (least, most uint64) {
	if slot >= a.slot {
		return a.low, a.high + (slot - a.slot)
	}
	return a.low - min(a.low, a.slot-slot), a.high
}

// distance returns by how much a block's height is above the highest or below the lowest possible
// height.
func (a agreement) distance(b block) (above, below uint64) {
	least, most := a.heightsAt(b.slot)
	return b.height - min(b.height, most), least - min(least, b.height)
}

// agreement returns the block's height as a range of one value.
func (b block) agreement() agreement { return agreement{b.slot, b.height, b.height} }

// agreementWith combines two blocks that corroborate each other, from different endpoints. The
// range includes both heights, because either endpoint may lie.
func (b block) agreementWith(other block) agreement {
	if b.slot < other.slot {
		b, other = other, b
	}
	return agreement{b.slot, min(b.height, other.height), max(b.height, other.height+(b.slot-other.slot))}
}

// heights keeps the block heights that endpoints report. Two reports that corroborate each other
// make an agreement, and a height outside it is refused. So once there is an agreement, no single
// answer decides how long a blockhash is valid.
type heights struct {
	slack uint64 // by how much a height may be outside an agreement

	mu      sync.Mutex
	reports []heightReport // by endpoint
	// agreed is the newest agreement, made at agreedAt. confirmedAt is the last time that an answer
	// was within the agreement. All are zero before the first agreement.
	agreed                agreement
	agreedAt, confirmedAt time.Time
	askedAt               time.Time // when other endpoints were last asked
	// These are the times of the first and the last search in the present series of uncorroborated
	// searches. firstUncorroborated is zero if the last search was corroborated.
	firstUncorroborated, lastUncorroborated time.Time
}

// The two ways in which an endpoint reports a height.
const (
	byBlockhash = iota
	byEpochInfo
	reportWays
)

// heightReport is the newest block that an endpoint reported in each way, and the finalized blocks
// that it reported.
type heightReport struct {
	newest [reportWays]struct {
		block block
		at    time.Time
	}
	final []finalizedReport // oldest first
}

// observe records an endpoint's report of a block. The agreement, if there is one, and the same
// endpoint's recent reports limit the possible heights. observe returns by how much more than the
// slack the height is above or below these limits. contradictedBy is the index of an endpoint that
// contradicts the report, -1 for none.
func (h *heights) observe(i, way int, b block, now time.Time) (above, below uint64, contradictedBy int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hasAgreement() && now.Sub(h.confirmedAt) > singleSufficesAfter {
		// No endpoint has confirmed the agreement for long, so it was wrong.
		h.agreed, h.agreedAt = agreement{}, time.Time{}
	}
	defer func() {
		// A refused report is not stored. Exception: before the first agreement an epoch-info
		// report is stored, because the endpoint's earlier blockhash report may be the wrong one.
		if (above == 0 && below == 0) || (way == byEpochInfo && !h.hasAgreement()) {
			h.reports[i].newest[way].block, h.reports[i].newest[way].at = b, now
		}
	}()
	corroborating, contradictedBy := h.findCorroborating(i, b, now)
	if corroborating != nil {
		h.agreed, h.agreedAt, h.confirmedAt = b.agreementWith(*corroborating), now, now
		return 0, 0, -1
	}
	for _, bound := range h.bounds(i, now) {
		over, under := bound.distance(b)
		above, below = max(above, over-min(over, h.slack)), max(below, under-min(under, h.slack))
	}
	if h.hasAgreement() && above == 0 && below == 0 {
		h.confirmedAt, contradictedBy = now, -1
	}
	return above, below, contradictedBy
}

// findCorroborating finds a block of another endpoint that corroborates b. If there is none,
// contradictedBy is the index of an endpoint that contradicts b, or -1.
func (h *heights) findCorroborating(i int, b block, now time.Time) (corroborating *block, contradictedBy int) {
	contradictedBy = -1
	for j := range h.reports {
		for _, report := range h.reports[j].newest {
			if j == i || report.at.IsZero() || now.Sub(report.at) > reportMaxAge || difference(b.slot, report.block.slot) > nearSlots {
				continue
			}
			if above, below := report.block.agreement().distance(b); max(above, below) <= h.slack {
				return &report.block, -1
			}
			contradictedBy = j
		}
	}
	return nil, contradictedBy
}

// bounds returns the agreement, if there is one, and the endpoint's own recent reports.
func (h *heights) bounds(i int, now time.Time) (out []agreement) {
	if h.hasAgreement() {
		out = append(out, h.agreed)
	}
	for _, report := range h.reports[i].newest {
		if !report.at.IsZero() && now.Sub(report.at) <= reportMaxAge {
			out = append(out, report.block.agreement())
		}
	}
	return out
}

func difference(a, b uint64) uint64 { return max(a, b) - min(a, b) }

func (h *heights) hasAgreement() bool { return h.agreed != agreement{} }

// startAsking reports whether the caller has to ask other endpoints now. If so, startAsking records
// the time, so that other callers do not ask too. The result noAgreement is true if there is no
// agreement yet.
func (h *heights) startAsking(now time.Time) (due, noAgreement bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	noAgreement = !h.hasAgreement()
	if now.Sub(h.agreedAt) < agreedMaxAge || now.Sub(h.askedAt) < agreedMaxAge {
		return false, noAgreement
	}
	h.askedAt = now
	return true, noAgreement
}

// agreedOn returns the newest agreement; false before there is one.
func (h *heights) agreedOn() (agreement, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.agreed, h.hasAgreement()
}
