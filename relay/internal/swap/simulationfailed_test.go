package swap

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestDeferralOfFailedDraft: the deferral that follows from each failure of a draft.
func TestDeferralOfFailedDraft(t *testing.T) {
	t.Parallel()
	at := func(detail string, code uint32) *shieldpool.TransactionError {
		return &shieldpool.TransactionError{Kind: "InstructionError", Instruction: 3, Detail: detail, Custom: code}
	}
	tests := map[string]struct {
		purpose   txmgr.Purpose
		failure   *shieldpool.TransactionError
		want      string
		wantFor   time.Duration // for a swap that is 60 s old
		wantLevel int
	}{
		"the price moved away":                   {txmgr.PurposeExecute, at("Custom", shieldpool.CodeSlippage), ReasonExecutionFailed, shortWait, 0},
		"a market of the route fails":            {txmgr.PurposeExecute, at("Custom", 6024), ReasonExecutionFailed, shortWait, 1},
		"the route exceeds the compute limit":    {txmgr.PurposeExecute, at("ComputationalBudgetExceeded", 0), ReasonExecutionFailed, shortWait, 1},
		"a stranger executed the swap first":     {txmgr.PurposeExecute, at("UninitializedAccount", 0), ReasonStateMissing, minWait, 0},
		"the refund is too early":                {txmgr.PurposeRefund, at("Custom", shieldpool.CodeSwapNotReady), ReasonTimeoutNotReached, shortWait, 0},
		"a stranger refunded the swap first":     {txmgr.PurposeRefund, at("UninitializedAccount", 0), ReasonStateMissing, minWait, 0},
		"the refund fails for another reason":    {txmgr.PurposeRefund, at("InvalidAccountData", 0), ReasonRefundFailed, shortWait, 0},
		"the refund fails with a program's code": {txmgr.PurposeRefund, at("Custom", shieldpool.CodeSlippage), ReasonRefundFailed, shortWait, 0},
		"an account cannot be created":           {txmgr.PurposeExecute, at("IllegalOwner", 0), ReasonExecutionFailed, shortWait, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.now = w.submission.CreatedAt.Add(time.Minute)
			wait := checkWait(t, w, w.planner.Rejected(w.submission, &txmgr.Draft{Purpose: test.purpose}, &txmgr.Failure{Err: test.failure}), test.want)
			if wait.Delay != test.wantFor {
				t.Errorf("wait is for %s, want %s", wait.Delay, test.wantFor)
			}
			var failure *shieldpool.TransactionError
			if !errors.As(wait.Cause, &failure) || failure != test.failure {
				t.Errorf("cause is %v, want the failure", wait.Cause)
			}
			if level := w.planner.memory.level(w.submission.ID, 0); level != test.wantLevel {
				t.Errorf("the next route is requested at width %d, want %d", level, test.wantLevel)
			}
		})
	}
}

// TestFailedRouteIsRetriedNarrower: a route that fails for another reason than its price is replaced
// by a narrower one, and after the narrowest the widest is tried again.
func TestFailedRouteIsRetriedNarrower(t *testing.T) {
	t.Parallel()
	w := newWorld(t, (*world).createTokenAccounts)
	failure := &shieldpool.TransactionError{Kind: "InstructionError", Instruction: 3, Detail: "InvalidAccountData"}
	for _, want := range []int{1, 2, 3, 4, 0, 1} {
		checkWait(t, w, w.planner.Rejected(w.submission, &txmgr.Draft{Purpose: txmgr.PurposeExecute}, &txmgr.Failure{Err: failure}), ReasonExecutionFailed)
		if _, err := w.next(); err != nil {
			t.Fatal(err)
		}
		if got, width := w.router.requests[len(w.router.requests)-1], routeWidths()[want]; got.MaxAccounts != width.accounts || got.DirectOnly != width.direct {
			t.Errorf("requested %+v, want %+v", got, width)
		}
	}
}

// TestDelay: delays grow with the swap's age, and no delay ends more than a slot after the timeout.
func TestDelay(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		age, atLeast, atMost time.Duration
		left                 uint64
		want                 time.Duration
	}{
		"just funded":                         {0, 0, maxWait, 200, 500 * time.Millisecond},
		"a clock that went back":              {-time.Hour, 0, maxWait, 200, 500 * time.Millisecond},
		"four seconds old":                    {4 * time.Second, 0, maxWait, 190, time.Second},
		"forty seconds old":                   {40 * time.Second, 0, maxWait, 100, 8 * time.Second},
		"old, three slots before the timeout": {78 * time.Second, 0, maxWait, 3, 1600 * time.Millisecond},
		"old, one slot before the timeout":    {79 * time.Second, 0, maxWait, 1, 800 * time.Millisecond},
		"old, past the timeout":               {time.Hour, 0, maxWait, 0, 8 * time.Second},
		"the router asks for longer":          {0, 3 * time.Second, maxWait, 200, 3 * time.Second},
		"the router asks for much longer":     {0, time.Hour, maxWait, 20, 8400 * time.Millisecond},
		"a short wait":                        {time.Minute, 0, shortWait, 50, 2 * time.Second},
		"slots that overflow a duration":      {time.Minute, 0, maxWait, 1 << 63, 8 * time.Second},
	}
	for name, test := range tests {
		if got := delay(test.age, test.atLeast, test.atMost, test.left, testSlot); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestMemoryIsBounded: the memory of a swap expires, and a new swap replaces the one that has
// been unchanged for the longest time.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m, now := newMemory(), time.Unix(1_700_000_000, 0)
	id := func(i int) uuid.UUID { return uuid.UUID{byte(i >> 16), byte(i >> 8), byte(i)} }
	for i := range maxRemembered + 10 {
		m.update(id(i), now.Add(time.Duration(i)), func(tries *earlierTries) { tries.levels[0] = 3 })
	}
	if len(m.bySwap) != maxRemembered || m.level(id(maxRemembered+9), 0) != 3 || m.level(id(9), 0) != 0 || m.level(id(10), 0) != 3 {
		t.Errorf("%d swaps are remembered, want the last %d", len(m.bySwap), maxRemembered)
	}
	now = now.Add(rememberedFor + time.Second)
	m.update(id(10), now, func(*earlierTries) {})
	m.update(id(maxRemembered+10), now, func(tries *earlierTries) { tries.levels[0] = 2 })
	if len(m.bySwap) != 2 || m.level(id(10), 0) != 3 || m.level(id(maxRemembered+10), 0) != 2 {
		t.Errorf("%d swaps are remembered, want the two changed last", len(m.bySwap))
	}
	m.forget(id(10))
	if m.level(id(10), 0) != 0 {
		t.Error("an ended swap is still remembered")
	}
}

// TestReasonsAreDistinct: reasons are stored and are a metric's label.
func TestReasonsAreDistinct(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if seen[r] || r == "" {
			t.Errorf("reason %q is duplicated or empty", r)
		}
		seen[r] = true
		if causeOf(r).Error() == "" {
			t.Errorf("reason %s has no cause", r)
		}
	}
}
