package submission

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// hungStore is a database that takes a write and never answers.
type hungStore struct{ Store }

func (hungStore) Finalize(ctx context.Context, _ []Landing, _ []ProofAPin) ([]Lease, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// The drain has time for one write that hangs, not for one after the other.
func TestTheLastWritesTakeNoLongerThanOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{EngineOptions: EngineOptions{
			Store: hungStore{}, ProofA: new(ProofAPolicy), Log: slog.New(slog.DiscardHandler), Timing: DefaultTiming(),
		}}
		r := newRecorder(e)
		for range 10 * recordBatch {
			r.finalized = append(r.finalized, &landedEntry{lease: Lease{ID: uuid.New(), Epoch: 1}})
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		began := time.Now()
		r.run(ctx)
		if took := time.Since(began); took > e.Timing.Lease {
			t.Errorf("the recorder ended after %s, want %s at most", took, e.Timing.Lease)
		}
	})
}

// taught keeps the pins that come with the ends of watches.
type taught struct {
	Store
	pins []ProofAPin
}

func (s *taught) Finalize(_ context.Context, _ []Landing, pins []ProofAPin) ([]Lease, error) {
	s.pins = pins
	return nil, nil
}

// TestTheFirstOfABatchPinsItsSign: of each sign one, in the order in which they ended.
func TestTheFirstOfABatchPinsItsSign(t *testing.T) {
	t.Parallel()
	db := &taught{}
	e := &Engine{EngineOptions: EngineOptions{Store: db, ProofA: new(ProofAPolicy), Log: slog.New(slog.DiscardHandler), Timing: DefaultTiming(), Observer: quiet{}, Now: time.Now}}
	e.tracker = newTracker(e)
	var batch []*landedEntry
	for n, sign := range []string{"", "negated", "plain", "negated", "plain"} {
		batch = append(batch, &landedEntry{lease: Lease{ID: uuid.New()}, sign: sign, signature: solana.Signature{byte(n)}})
	}
	newRecorder(e).writeFinalized(t.Context(), batch)
	want := []ProofAPin{{Encoding: "negated", Signature: solana.Signature{1}}, {Encoding: "plain", Signature: solana.Signature{2}}}
	if diff := cmp.Diff(want, db.pins); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
}
