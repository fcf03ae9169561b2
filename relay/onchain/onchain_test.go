package onchain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestCommitmentsAreOrdered(t *testing.T) {
	t.Parallel()
	order := []Commitment{"", Processed, Confirmed, Finalized}
	for i, c := range order {
		for j, least := range order {
			if got := c.AtLeast(least); got != (i >= j) {
				t.Errorf("%q at least as final as %q: %v, want %v", c, least, got, i >= j)
			}
		}
	}
	if Commitment("max").AtLeast(Processed) {
		t.Error("an unknown commitment counts as processed")
	}
}

func TestErrorMatching(t *testing.T) {
	t.Parallel()
	spent := &shieldpool.TransactionError{Kind: "AlreadyProcessed"}
	tests := map[string]struct {
		err             error
		wantUnavailable bool
		wantIs          error // another error that it matches; nil for none
		wantText        string
	}{
		"no answer":                     {err: &Unavailable{Method: "getSlot", Kind: KindTimeout}, wantUnavailable: true, wantText: "getSlot: chain is unavailable: timeout"},
		"an unusable answer":            {err: &Unavailable{Method: "getSlot", Kind: KindRejected, Detail: "HTTP 403"}, wantUnavailable: true, wantText: "rejected: HTTP 403"},
		"no answer of a named endpoint": {err: &Unavailable{Method: "getSlot", Endpoint: "archive", Kind: KindTimeout}, wantUnavailable: true, wantText: "getSlot at archive: chain is unavailable: timeout"},
		"a cancelled call":              {err: &Unavailable{Kind: KindCancelled, Err: context.Canceled}, wantUnavailable: true, wantIs: context.Canceled, wantText: KindCancelled},
		"a refused call":                {err: &RPCError{Method: "getSlot", Code: -32602, Message: "no"}, wantText: "getSlot: the RPC endpoint refuses the call with code -32602: no"},
		"a refused transaction":         {err: &SendError{Err: spent}, wantIs: spent, wantText: "AlreadyProcessed"},
		"a slot without a block":        {err: ErrSlotSkipped, wantIs: ErrSlotSkipped, wantText: "no block"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrapped := fmt.Errorf("step: %w", test.err)
			if got := errors.Is(wrapped, ErrUnavailable); got != test.wantUnavailable {
				t.Errorf("error is unavailable: %v, want %v", got, test.wantUnavailable)
			}
			if test.wantIs != nil && !errors.Is(wrapped, test.wantIs) {
				t.Errorf("error is %v, want one that matches %v", wrapped, test.wantIs)
			}
			if !strings.Contains(wrapped.Error(), test.wantText) {
				t.Errorf("text is %q, want %q in it", wrapped, test.wantText)
			}
		})
	}
}
