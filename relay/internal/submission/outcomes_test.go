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

// quiet is an observer that counts nothing.
type quiet struct{}

func (quiet) Stage(string, time.Duration)     {}
func (quiet) Outcome(shieldpool.Kind, string) {}
func (quiet) Attempt(string)                  {}
func (quiet) Lease(string, int)               {}
func (quiet) Poll(int, bool)                  {}

// taught keeps the pins that come with the ends of watches.
type taught struct {
	Store
	pins []ProofAPin
}

func (s *taught) Finalize(_ context.Context, _ []Landing, pins []ProofAPin) ([]txmgr.Lease, error) {
	s.pins = pins
	return nil, nil
}

// TestTheFirstOfABatchPinsItsSign: one pin for each sign, in the order of finality.
func TestTheFirstOfABatchPinsItsSign(t *testing.T) {
	t.Parallel()
	db := &taught{}
	h := &Handler{Options: Options{Store: db, ProofA: new(ProofAPolicy), Log: slog.New(slog.DiscardHandler), Timing: txmgr.DefaultTiming(), Observer: quiet{}, Now: time.Now}}
	var batch []txmgr.Landed
	for n, sign := range []string{"", "negated", "plain", "negated", "plain", "negated"} {
		s := &Submission{ID: uuid.New(), Kind: KindSwapExecution, ProofAEncoding: sign}
		batch = append(batch, txmgr.Landed{Job: s.Job(), Landing: txmgr.Landing{
			Signature: solana.Signature{byte(n)}, Purpose: txmgr.PurposeTransact, Ours: true,
		}})
	}
	batch = slices.Insert(batch, 1, txmgr.Landed{Job: batch[2].Job, Landing: txmgr.Landing{Signature: solana.Signature{9}, Purpose: txmgr.PurposeTransact}}) // not ours
	if _, err := h.Finalize(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	want := []ProofAPin{{Encoding: "negated", Signature: solana.Signature{1}}, {Encoding: "plain", Signature: solana.Signature{2}}}
	if diff := cmp.Diff(want, db.pins); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
}

// TestOnlyRentReturnedToOurPayersReducesTheCaps.
func TestOnlyRentReturnedToOurPayersReducesTheCaps(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		landing txmgr.Landing
		want    uint64
	}{
		"our own execution brings the state's back": {txmgr.Landing{Purpose: txmgr.PurposeExecute, Ours: true}, shieldpool.SwapStateRent},
		"a stranger's execution pays it to him":     {txmgr.Landing{Purpose: txmgr.PurposeExecute}, 0},
		"our refund brings nothing back":            {txmgr.Landing{Purpose: txmgr.PurposeRefund, Ours: true}, 0},
	} {
		if got := returnedRent(txmgr.Landed{Landing: test.landing}); got != test.want {
			t.Errorf("%s: %d lamports are taken off what was spent, want %d", name, got, test.want)
		}
	}
}
