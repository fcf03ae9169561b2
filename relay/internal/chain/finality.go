package chain

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// finalityInterval is how often the finalized slot is read.
	finalityInterval = 5 * time.Second
	// finalityStalledAfter is how long the finalized slot has to stand still to count as stalled.
	// On a healthy chain it advances several times a second.
	finalityStalledAfter = 20 * time.Second
	// processedAdvancesIn is a time in which the processed slot of a healthy chain advances.
	processedAdvancesIn = time.Second
)

// FinalityReport is what is known of the chain's finality.
type FinalityReport struct {
	// Slot is the newest finalized slot. AdvancedAt is when this slot was first read, and ReadAt is
	// when endpoints last answered. All are zero before the first reading.
	Slot               uint64
	AdvancedAt, ReadAt time.Time
	// Stalled reports that endpoints answer, but the finalized slot stands still. ProcessedAdvances
	// reports that the processed slots advance nevertheless. One possible cause of such a stall is
	// a migration of the consensus, during which no transaction lands, becomes confirmed or
	// expires.
	Stalled, ProcessedAdvances bool
	Consensus                  onchain.Consensus
}

// Finality tracks the finalized slot and the consensus rules of the chain. With several endpoints
// configured, a slot counts only when two of them have reached it, and Alpenglow counts only when
// two of them report it. Without such an agreement the last reading stays.
type Finality struct {
	endpoints *Endpoints
	now       func() time.Time
	log       *slog.Logger

	mu         sync.Mutex
	last       FinalityReport
	standstill standstill // zero since the finalized slot advanced
}

// standstill is the processed slot that was read when the finalized slot was last seen to stand still.
type standstill struct {
	processed uint64
	at        time.Time
}

// finalityMaxAge is the age beyond which a reading no longer describes the chain.
const finalityMaxAge = 30 * time.Second

// Current reports whether the reading is recent enough to describe the chain.
func (r FinalityReport) Current(now time.Time) bool {
	return !r.ReadAt.IsZero() && now.Sub(r.ReadAt) <= finalityMaxAge
}

// NewFinality makes a Finality that reads from the endpoints.
func NewFinality(e *Endpoints, now func() time.Time, log *slog.Logger) *Finality {
	return &Finality{endpoints: e, now: now, log: log}
}

// Report returns the last reading.
func (f *Finality) Report() FinalityReport {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// Run reads until the context ends, but not the slots that another process of the fleet reads.
func (f *Finality) Run(ctx context.Context) {
	for n := 0; ; n++ {
		f.readForFleet(ctx)
		if n%consensusEvery == 0 {
			f.ReadConsensus(ctx)
		}
		if !sleep(ctx, finalityInterval) {
			return
		}
	}
}

// Read reads the finalized slot once. Without an answer the last reading stays.
func (f *Finality) Read(ctx context.Context) {
	if slot, ok := f.slot(ctx, onchain.Finalized); ok {
		f.observe(ctx, slot, f.now())
	}
}

// readForFleet reads the finalized slot, unless another process has read it since this one did.
func (f *Finality) readForFleet(ctx context.Context) {
	f.endpoints.readForFleet(ctx, "finalized slot", func(value []byte, age time.Duration) bool {
		slot, err := strconv.ParseUint(string(value), 10, 64)
		at, own := f.now().Add(-age), f.Report()
		// Whether finality stands still is for this process's endpoints to say.
		if err != nil || age >= finalityInterval || !at.After(own.ReadAt) || slot <= own.Slot || !f.endpoints.Corroborated(slot) {
			return false
		}
		f.observe(ctx, slot, at)
		return true
	}, func(ctx context.Context) []byte {
		slot, ok := f.slot(ctx, onchain.Finalized)
		if !ok {
			return nil
		}
		f.observe(ctx, slot, f.now())
		return strconv.AppendUint(nil, slot, 10)
	})
}

// observe records the finalized slot that endpoints reported at that time. If it stands still, observe also
// reads the processed slot.
func (f *Finality) observe(ctx context.Context, slot uint64, at time.Time) {
	f.mu.Lock()
	wasStalled := f.last.Stalled
	advanced := f.advance(slot, at)
	stalled, last := f.last.Stalled, f.standstill
	f.mu.Unlock()
	if !advanced && at.Sub(last.at) >= processedAdvancesIn {
		f.readProcessed(ctx, last, at)
	}
	switch r := f.Report(); {
	case stalled && !wasStalled:
		f.log.WarnContext(ctx, "finality stands still; no more attempts expire until it goes on", "slot", r.Slot, "slots_go_on", r.ProcessedAdvances)
	case wasStalled && !stalled:
		f.log.InfoContext(ctx, "finality goes on", "slot", slot)
	}
}

// advance records the finalized slot, and reports whether it is newer than the last one. The caller has locked mu.
func (f *Finality) advance(slot uint64, at time.Time) bool {
	f.last.ReadAt = at
	if !f.last.AdvancedAt.IsZero() && slot <= f.last.Slot {
		f.last.Stalled = at.Sub(f.last.AdvancedAt) >= finalityStalledAfter
		return false
	}
	f.last.Slot, f.last.AdvancedAt, f.last.Stalled, f.last.ProcessedAdvances = slot, at, false, false
	f.standstill = standstill{}
	return true
}

// readProcessed reads the processed slot, and compares it with the one that was read before.
func (f *Finality) readProcessed(ctx context.Context, before standstill, at time.Time) {
	processed, ok := f.slot(ctx, onchain.Processed)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.standstill, f.last.ProcessedAdvances = standstill{processed, at}, before.processed > 0 && processed > before.processed
}

// slot returns the newest slot that two endpoints have reached at the commitment. If only one
// endpoint is configured, slot returns the slot of that one.
func (f *Finality) slot(ctx context.Context, c onchain.Commitment) (slot uint64, answered bool) {
	slots := askEach(ctx, f.endpoints, query[uint64]{
		method: "getSlot", urgency: outbound.Background,
		// The slot is not checked against the confirmed slots: when nothing becomes confirmed,
		// the processed slots run far ahead of them.
		do: func(ctx context.Context, source askedEndpoint) (uint64, error) { return source.Slot(ctx, c) },
	})
	if len(slots) < f.needed() {
		return 0, false
	}
	slices.Sort(slots)
	return slots[len(slots)-f.needed()], true
}

// needed is how many endpoints have to report the same.
func (f *Finality) needed() int { return max(min(len(f.endpoints.withRole(RoleRead)), 2), 1) }

// askEach asks every read endpoint whose breaker allows it, one after another, and returns
// the answers.
func askEach[T any](ctx context.Context, e *Endpoints, q query[T]) (out []T) {
	for _, ep := range e.withRole(RoleRead) {
		permit, ok := ep.breaker.Try()
		if !ok {
			continue
		}
		if v, err := attempt(ctx, e, ep, permit, q, 2); err == nil {
			out = append(out, v)
		}
	}
	return out
}
