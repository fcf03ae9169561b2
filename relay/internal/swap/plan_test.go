package swap

import (
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// expected returns the expected step, or the reason to wait. Unlike plan, it states the
// conditions of each step, not an order of cases.
func expected(f *facts) (step, string) {
	exists, late, quoted := f.state != stateMissing, f.slot >= f.timeout, f.quote == quoteMeets
	accounts := []accountFact{f.wsol, f.output, f.recipient}
	bad := false
	for i, a := range accounts {
		bad = bad || a == accountUnusable || a == accountFrozen && i < 2
	}
	frozen := f.recipient == accountFrozen
	near := !late && f.slot+f.lastSlots >= f.timeout
	open := exists && !late && !near && f.walletKnown && f.state == stateHeld && !bad && !frozen
	matches := map[step]bool{
		stepFindEnd: !exists && f.end == endUnread,
		stepEnd:     !exists && f.end == endFound,
		stepRefund:  exists && late && f.walletKnown,
		stepQuote:   open && f.quote == quoteUnread,
		stepExecute: open && quoted,
	}
	found, n := stepWait, 0
	for s, ok := range matches {
		if ok {
			found, n = s, n+1
		}
	}
	if n > 1 {
		panic("the conditions of two steps hold")
	}
	if found != stepWait {
		return found, ""
	}
	switch {
	case !exists && f.recentlyFunded:
		return stepWait, ReasonStateMissing
	case !exists:
		return stepWait, txmgr.HoldHistory
	case !f.walletKnown:
		return stepWait, ReasonWalletUnknown
	case f.state == stateWrong:
		return stepWait, ReasonStateWrong
	case near:
		return stepWait, ReasonTimeoutNear
	case frozen:
		return stepWait, ReasonRecipientFrozen
	case bad:
		return stepWait, ReasonAccountUnusable
	default:
		return stepWait, ReasonPrice
	}
}

// testSlot is the time of a slot in the tests, and testLastSlots the number of slots before
// the timeout in which no execution starts then.
const (
	testSlot      = 400 * time.Millisecond
	testLastSlots = 4
)

func TestLastSlotsFollowTheSlotTime(t *testing.T) {
	t.Parallel()
	for slot, want := range map[time.Duration]uint64{
		400 * time.Millisecond: testLastSlots,
		200 * time.Millisecond: 8,
		time.Second:            4,  // a confirmed slot is some slots behind
		20 * time.Millisecond:  16, // a fast chain leaves the most of its slots to the swap
	} {
		if got := lastSlots(slot); got != want {
			t.Errorf("at %s a slot no execution starts in the last %d slots, want %d", slot, got, want)
		}
	}
}

// TestPlan checks every combination of facts.
func TestPlan(t *testing.T) {
	t.Parallel()
	var combinations int
	everyFacts(func(f facts) {
		combinations++
		wantStep, wantReason := expected(&f)
		if next, reason := plan(&f); next != wantStep || reason != wantReason {
			t.Errorf("%+v leads to step %d %q, want %d %q", f, next, reason, wantStep, wantReason)
		}
	})
	if want := 5 * 3 * 3 * 2 * 2 * 4 * 4 * 4 * 3; combinations != want {
		t.Errorf("%d combinations, want %d", combinations, want)
	}
}

func everyFacts(do func(facts)) {
	accounts := []accountFact{accountMissing, accountReady, accountFrozen, accountUnusable}
	for _, slot := range []uint64{195, 196, 199, 200, 201} {
		for _, state := range []stateFact{stateMissing, stateHeld, stateWrong} {
			for _, end := range []endFact{endUnread, endFound, endUnknown} {
				for _, flags := range []int{0, 1, 2, 3} {
					for _, wsol := range accounts {
						for _, output := range accounts {
							for _, recipient := range accounts {
								for _, quote := range []quoteFact{quoteUnread, quoteMeets, quoteShort} {
									do(facts{
										slot: slot, timeout: 200, lastSlots: testLastSlots, state: state, end: end, recentlyFunded: flags&1 > 0, walletKnown: flags&2 > 0,
										wsol: wsol, output: output, recipient: recipient, quote: quote,
									})
								}
							}
						}
					}
				}
			}
		}
	}
}

// TestPlanCases names the most important cases.
func TestPlanCases(t *testing.T) {
	t.Parallel()
	funded := facts{slot: 100, timeout: 200, lastSlots: testLastSlots, state: stateHeld, walletKnown: true, wsol: accountReady, output: accountReady, recipient: accountReady}
	tests := map[string]struct {
		change     func(*facts)
		want       step
		wantReason string
	}{
		"a funded swap is quoted before anything is paid":               {func(f *facts) { f.wsol, f.output = accountMissing, accountMissing }, stepQuote, ""},
		"with a good price, the execution creates missing accounts":     {func(f *facts) { f.wsol, f.quote = accountMissing, quoteMeets }, stepExecute, ""},
		"the execution creates a closed recipient's account":            {func(f *facts) { f.recipient, f.quote = accountMissing, quoteMeets }, stepExecute, ""},
		"with a good price and all accounts, it executes":               {func(f *facts) { f.quote = quoteMeets }, stepExecute, ""},
		"with a bad price, it waits":                                    {func(f *facts) { f.quote = quoteShort }, stepWait, ReasonPrice},
		"with a frozen recipient, it waits":                             {func(f *facts) { f.recipient = accountFrozen }, stepWait, ReasonRecipientFrozen},
		"with a frozen recipient, it refunds after the timeout":         {func(f *facts) { f.recipient, f.slot = accountFrozen, 200 }, stepRefund, ""},
		"five slots before the timeout it executes":                     {func(f *facts) { f.slot, f.quote = 195, quoteMeets }, stepExecute, ""},
		"four slots before the timeout it waits":                        {func(f *facts) { f.slot, f.quote = 196, quoteMeets }, stepWait, ReasonTimeoutNear},
		"at the timeout it refunds whatever the price":                  {func(f *facts) { f.slot, f.quote = 200, quoteMeets }, stepRefund, ""},
		"a state that contradicts the proof is never executed":          {func(f *facts) { f.state = stateWrong }, stepWait, ReasonStateWrong},
		"a state that contradicts the proof is refunded":                {func(f *facts) { f.state, f.slot = stateWrong, 300 }, stepRefund, ""},
		"if the state is missing, the end is searched in the history":   {func(f *facts) { f.state, f.slot = stateMissing, 300 }, stepFindEnd, ""},
		"a missing state without a known end, soon after the first leg": {func(f *facts) { f.state, f.end, f.recentlyFunded = stateMissing, endUnknown, true }, stepWait, ReasonStateMissing},
		"a missing state without a known end, long after the first leg": {func(f *facts) { f.state, f.end = stateMissing, endUnknown }, stepWait, txmgr.HoldHistory},
		"with an unknown wallet, it waits even after the timeout":       {func(f *facts) { f.walletKnown, f.slot = false, 300 }, stepWait, ReasonWalletUnknown},
		"if a token account has another owner, it waits":                {func(f *facts) { f.output = accountUnusable }, stepWait, ReasonAccountUnusable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := funded
			test.change(&f)
			if next, reason := plan(&f); next != test.want || reason != test.wantReason {
				t.Errorf("step is %d %q, want %d %q", next, reason, test.want, test.wantReason)
			}
		})
	}
}
