package submission

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// noObserver is an observer that ignores all events.
type noObserver struct{}

func (noObserver) Stage(string, time.Duration)        {}
func (noObserver) Outcome(shieldpool.Kind, string)    {}
func (noObserver) Attempt(string)                     {}
func (noObserver) Lease(string, int)                  {}
func (noObserver) Poll(int, bool)                     {}
func (noObserver) LandedAfter(string, uint64, uint64) {}
func (noObserver) LaneExpired(string)                 {}

// pinRecorder keeps the pins that are passed to Finalize.
type pinRecorder struct {
	Store
	pins []ProofAPin
}

func (s *pinRecorder) Finalize(_ context.Context, _ []Landing, pins []ProofAPin) ([]txmgr.Lease, error) {
	s.pins = pins
	return nil, nil
}

// TestFirstLandingOfEachEncodingIsPinned: a batch has one pin for each encoding of A, in the order of its
// landings.
func TestFirstLandingOfEachEncodingIsPinned(t *testing.T) {
	t.Parallel()
	db := &pinRecorder{}
	h := &Handler{Options: Options{Store: db, ProofA: new(ProofAPolicy), Log: slog.New(slog.DiscardHandler), Timing: txmgr.DefaultTiming(), Observer: noObserver{}, Now: time.Now}}
	var batch []txmgr.Landed
	for n, encoding := range []string{"", "negated", "plain", "negated", "plain", "negated"} {
		s := &Submission{ID: uuid.New(), Kind: KindSwapExecution, ProofAEncoding: encoding}
		batch = append(batch, txmgr.Landed{Job: s.Job(), Landing: txmgr.Landing{
			Signature: solana.Signature{byte(n)}, Purpose: txmgr.PurposeTransact, Ours: true,
		}})
	}
	batch = slices.Insert(batch, 1, txmgr.Landed{Job: batch[2].Job, Landing: txmgr.Landing{Signature: solana.Signature{9}, Purpose: txmgr.PurposeTransact}}) // of a stranger
	if _, err := h.Finalize(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	want := []ProofAPin{{Encoding: "negated", Signature: solana.Signature{1}}, {Encoding: "plain", Signature: solana.Signature{2}}}
	if diff := cmp.Diff(want, db.pins); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
}

func TestOnlyRentReturnedToOurPayersReducesTheCaps(t *testing.T) {
	t.Parallel()
	h := &Handler{Options: Options{Rent: func() shieldpool.Rent { return 5080 }}}
	for name, test := range map[string]struct {
		landing txmgr.Landing
		want    uint64
	}{
		"an own execution returns the state's rent": {txmgr.Landing{Purpose: txmgr.PurposeExecute, Ours: true}, 1_468_120},
		"a stranger's execution returns nothing":    {txmgr.Landing{Purpose: txmgr.PurposeExecute}, 0},
		"an own refund returns nothing":             {txmgr.Landing{Purpose: txmgr.PurposeRefund, Ours: true}, 0},
	} {
		if got := h.returnedRent(txmgr.Landed{Landing: test.landing}); got != test.want {
			t.Errorf("%s: %d lamports are subtracted from the spending, want %d", name, got, test.want)
		}
	}
}
