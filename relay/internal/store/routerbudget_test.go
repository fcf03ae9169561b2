package store

import (
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/internal/pgtest"
)

func TestRouterCallsAreCountedOverAllProcesses(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	first, second := openOn(t, url), openOn(t, url)
	take := func(s *Store) time.Duration {
		t.Helper()
		wait, err := s.TakeRouterCall(t.Context(), "preferred", 1000)
		ok(t, err)
		return wait
	}
	if wait := take(first); wait != 0 {
		t.Errorf("the first call waits %s, want none", wait)
	}
	const usedUp = `SELECT used_until::text FROM router_budgets`
	exec(t, first, `UPDATE router_budgets SET used_until = now() + interval '1 hour'`)
	if wait, err := second.TakeRouterCall(t.Context(), "fallback", 1000); err != nil || wait != 0 {
		t.Errorf("another router's call waits %s, error %v, want none", wait, err)
	}
	exec(t, first, `DELETE FROM router_budgets WHERE router = 'fallback'`)
	before := one[string](t, first, usedUp)
	if wait := take(second); wait < 59*time.Minute || wait > time.Hour {
		t.Errorf("with a budget that another process used up for an hour, the wait is %s, want about an hour", wait)
	}
	if after := one[string](t, first, usedUp); after != before {
		t.Errorf("a call that was not taken changed the budget from %s to %s", before, after)
	}
	exec(t, first, `UPDATE router_budgets SET used_until = now() - interval '1 hour'`)
	if wait := take(second); wait != 0 {
		t.Errorf("after an hour without calls the wait is %s, want none", wait)
	}
	if one[bool](t, first, `SELECT used_until < now() - interval '1 minute' FROM router_budgets`) {
		t.Error("calls that were not made in the last hour are saved up, want only the last second's")
	}
}
