package swap

import (
	"errors"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestTheFormatOfAnExecution builds executions over routes of different widths. Besides those
// of the route, an execution in version 1 that creates all token accounts has 17 addresses.
func TestTheFormatOfAnExecution(t *testing.T) {
	t.Parallel()
	auto := []shieldpool.Format{shieldpool.Legacy, shieldpool.V1}
	for name, test := range map[string]struct {
		formats []shieldpool.Format
		// accounts are those of the route that no other instruction names.
		accounts   int
		wantFormat shieldpool.Format
		wantReason string
	}{
		"a narrow route without version 1": {nil, 5, shieldpool.V0, ""},
		"a wide route without version 1":   {nil, 40, "", ReasonRouteTooLarge},
		"a narrow route":                   {auto, 5, shieldpool.V1, ""},
		"a wide route":                     {auto, 40, shieldpool.V1, ""},
		"a route of 64 addresses":          {auto, 47, shieldpool.V1, ""},
		"a route of 65 addresses":          {auto, 48, "", ReasonRouteTooLarge},
		"version 1 alone":                  {[]shieldpool.Format{shieldpool.V1}, 40, shieldpool.V1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			o := w.options()
			if test.formats != nil {
				o.Formats = func() []shieldpool.Format { return test.formats }
			}
			var err error
			if w.planner, err = New(o); err != nil {
				t.Fatal(err)
			}
			w.router.padding = func(QuoteRequest) int { return test.accounts }
			order, err := w.planner.Next(t.Context(), w.submission, 0, 0)
			if test.wantReason != "" {
				var wait *txmgr.Deferral
				if !errors.As(err, &wait) || wait.Reason != test.wantReason {
					t.Fatalf("the error is %v, want a deferral for %s", err, test.wantReason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if order.Draft.Format != test.wantFormat {
				t.Errorf("the draft is %s, want %s", order.Draft.Format, test.wantFormat)
			}
			raw := w.build(order.Draft)
			if got := shieldpool.FormatOf(raw); got != test.wantFormat || len(raw) > got.MaxSize() {
				t.Errorf("the transaction is %s of %d bytes, want %s", got, len(raw), test.wantFormat)
			}
			if n := len(w.router.requests); n != 1 {
				t.Errorf("%d routes were asked for, want the widest alone", n)
			}
		})
	}
}

// build builds a draft's transaction in its format.
func (w *world) build(d *txmgr.Draft) []byte {
	w.t.Helper()
	tx, err := d.Build(w.payer, shieldpool.Compute{Format: d.Format, Limit: 300_000, Price: 1, LoadedData: 1 << 20}, solana.Hash{1})
	if err != nil {
		w.t.Fatal(err)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		w.t.Fatal(err)
	}
	return raw
}

// TestVersion1ReadsNoLookupTables has a router that names a table which cannot be read.
func TestVersion1ReadsNoLookupTables(t *testing.T) {
	t.Parallel()
	for _, v1 := range []bool{false, true} {
		w := newWorld(t, nil)
		missing := key(99)
		w.router.table = &missing
		o := w.options()
		if v1 {
			o.Formats = func() []shieldpool.Format { return []shieldpool.Format{shieldpool.V0, shieldpool.V1} }
		}
		var err error
		if w.planner, err = New(o); err != nil {
			t.Fatal(err)
		}
		order, err := w.planner.Next(t.Context(), w.submission, 0, 0)
		if v1 != (err == nil && order.Draft != nil) {
			t.Errorf("version 1 on: %v; the draft is %+v, the error %v", v1, order.Draft, err)
		}
	}
}

func TestTheFormatOfARefund(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		formats []shieldpool.Format
		want    shieldpool.Format
	}{
		"legacy":                     {[]shieldpool.Format{shieldpool.Legacy}, shieldpool.V0},
		"version 1 where it has to":  {[]shieldpool.Format{shieldpool.Legacy, shieldpool.V1}, shieldpool.V0},
		"version 1 for transactions": {[]shieldpool.Format{shieldpool.V1}, shieldpool.V1},
	} {
		w := newWorld(t, func(w *world) { w.chain.slot = testTimeout })
		o := w.options()
		o.Formats = func() []shieldpool.Format { return test.formats }
		var err error
		if w.planner, err = New(o); err != nil {
			t.Fatal(err)
		}
		order, err := w.planner.Next(t.Context(), w.submission, 0, 0)
		if err != nil || order.Draft == nil || order.Draft.Purpose != txmgr.PurposeRefund {
			t.Fatalf("%s: the order is %+v, %v, want a refund", name, order, err)
		}
		if got := shieldpool.FormatOf(w.build(order.Draft)); got != test.want || order.Draft.Format != test.want {
			t.Errorf("%s: the refund is %s, its draft %s, want %s", name, got, order.Draft.Format, test.want)
		}
	}
}
