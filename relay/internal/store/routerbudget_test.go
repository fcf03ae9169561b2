package store

import (
	"testing"
	"time"
)

func TestRouterCallsAreCountedOverAllProcesses(t *testing.T) {
	t.Parallel()
	s := open(t)
	take := func() time.Duration {
		t.Helper()
		wait, err := s.TakeRouterCall(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	if wait := take(); wait != 0 {
		t.Errorf("the first call waits %s, want none", wait)
	}
	exec(t, s, `UPDATE router_budget SET used_until = now() + interval '1 hour'`)
	if wait := take(); wait < 59*time.Minute || wait > time.Hour {
		t.Errorf("with a budget that others used up for an hour, the wait is %s, want about an hour", wait)
	}
	exec(t, s, `UPDATE router_budget SET used_until = now() + interval '2 hours' WHERE used_until > now() + interval '61 minutes'`)
	if wait := take(); wait > time.Hour {
		t.Errorf("a call that was not taken used the budget: the wait is %s, want at most an hour", wait)
	}
	exec(t, s, `UPDATE router_budget SET used_until = now() - interval '1 hour'`)
	if wait := take(); wait != 0 {
		t.Errorf("after an hour without calls the wait is %s, want none", wait)
	}
	if one[bool](t, s, `SELECT used_until < now() - interval '1 minute' FROM router_budget`) {
		t.Error("calls that were not made in the last hour are saved up, want only the last second's")
	}
}
