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
				t.Errorf("%q is at least %q: %v, want %v", c, least, got, i >= j)
			}
		}
	}
	if Commitment("max").AtLeast(Processed) {
		t.Error("a commitment that nobody knows counts as processed")
	}
}

func TestErrorsAreDistinguished(t *testing.T) {
	t.Parallel()
	spent := &shieldpool.TransactionError{Kind: "AlreadyProcessed"}
	tests := map[string]struct {
		err         error
		wantUnknown bool
		wantIs      error // another; nil for none
		wantText    string
	}{
		"no answer is unknown":                      {err: &Unavailable{Method: "getSlot", Kind: KindTimeout}, wantUnknown: true, wantText: "getSlot: chain is unavailable: timeout"},
		"an answer that says nothing has its why":   {err: &Unavailable{Method: "getSlot", Kind: KindRejected, Detail: "HTTP 403"}, wantUnknown: true, wantText: "rejected: HTTP 403"},
		"an answer of one of several names it":      {err: &Unavailable{Method: "getSlot", Endpoint: "archive", Kind: KindTimeout}, wantUnknown: true, wantText: "getSlot at archive: chain is unavailable: timeout"},
		"a caller who left is unknown and told so":  {err: &Unavailable{Kind: KindCancelled, Err: context.Canceled}, wantUnknown: true, wantIs: context.Canceled, wantText: KindCancelled},
		"a refused call is known":                   {err: &RPCError{Method: "getSlot", Code: -32602, Message: "no"}, wantText: "getSlot: the RPC endpoint refuses the call with code -32602: no"},
		"a refused transaction is known, with why":  {err: &SendError{Err: spent}, wantIs: spent, wantText: "AlreadyProcessed"},
		"a slot without a block is not unavailable": {err: ErrSlotSkipped, wantIs: ErrSlotSkipped, wantText: "no block"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrapped := fmt.Errorf("step: %w", test.err)
			if got := errors.Is(wrapped, ErrUnavailable); got != test.wantUnknown {
				t.Errorf("unknown: %v, want %v", got, test.wantUnknown)
			}
			if test.wantIs != nil && !errors.Is(wrapped, test.wantIs) {
				t.Errorf("%v is not %v", wrapped, test.wantIs)
			}
			if !strings.Contains(wrapped.Error(), test.wantText) {
				t.Errorf("text is %q, want %q in it", wrapped, test.wantText)
			}
		})
	}
}
