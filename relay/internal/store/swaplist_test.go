package store

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

// swapsInEachState creates a swap in each state, by name. The timeouts are 110, 120, and so on.
func swapsInEachState(t *testing.T, s *Store) map[string]txmgr.Lease {
	t.Helper()
	ctx := t.Context()
	w := worker(t, s)
	legs := map[string]txmgr.Lease{}
	for i, name := range []string{"new", "leased", "waiting", "delayed", "quoted", "executed", "final", "refunded", "failed", "no timeout"} {
		_, c := bothLegs(t, s, w, uint64(i)+1)
		l := c.Lease
		legs[name] = l
		ok(t, s.UpdateSwap(ctx, l, submission.PhaseFunded, 110+10*uint64(i)))
		switch name {
		case "new":
			ok(t, s.Release(ctx, l, 0, ""))
			exec(t, s, `UPDATE submissions SET state = 'pending', tries = 0, due_at = now() + interval '10 minutes' WHERE id = $1`, l.ID)
		case "waiting":
			ok(t, s.Release(ctx, l, time.Hour, "swap_price"))
		case "delayed":
			ok(t, s.Release(ctx, l, time.Hour, ""))
		case "quoted":
			for n := byte(1); n <= 3; n++ {
				ok(t, s.RecordAttempt(ctx, l, attemptFor(100+n, txmgr.PurposeExecute)))
			}
			ok(t, s.MarkAttemptsDead(ctx, l, []txmgr.DeadAttempt{{Signature: solana.Signature{101}}}))
		case "executed", "final":
			complete(t, s, secondLegLanding(l, byte(i), submission.PhaseExecuted))
			if name == "final" {
				finalize(t, s, secondLegLanding(l, byte(i), submission.PhaseExecuted))
			}
		case "refunded":
			complete(t, s, secondLegLanding(l, byte(i), submission.PhaseRefunded))
		case "failed":
			ok(t, s.Fail(ctx, l, refusal.New(refusal.ProgramError, "refused")))
		case "no timeout":
			exec(t, s, `UPDATE swaps SET timeout_slot = 0 WHERE id = $1`, l.ID)
		}
		exec(t, s, `UPDATE swaps SET created_at = now() - $2 * interval '1 minute' WHERE id = $1`, l.ID, 20-i)
	}
	return legs
}

func TestSwapsAreSummedUpByPhaseAndTimeout(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	if got, err := s.Swaps(ctx, 5); err != nil || len(got.ByPhase) != 0 || got.OldestAge != 0 || got.Overdue != 0 || got.Unfinished() != 0 {
		t.Errorf("without swaps the summary is %+v (%v), want zero", got, err)
	}
	legs := swapsInEachState(t, s)
	phases := map[submission.Phase]int64{
		submission.PhaseFunded: 5, submission.PhaseQuoted: 1, submission.PhaseExecuted: 1, submission.PhaseRefunded: 1,
	}
	tests := map[string]struct {
		slot, overdue, slots uint64
	}{
		"no slot is known":                      {0, 0, 0},
		"before the first timeout":              {109, 0, 0},
		"at the first timeout":                  {110, 1, 0},
		"one slot after the first timeout":      {111, 1, 1},
		"after two timeouts":                    {125, 2, 15},
		"after the timeout of an executed swap": {165, 5, 55},
		"after all timeouts":                    {1000, 5, 890},
	}
	for name, test := range tests {
		got, err := s.Swaps(ctx, test.slot)
		want := SwapSummary{ByPhase: phases, Overdue: int64(test.overdue), OldestOverdueSlots: test.slots}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(want, "OldestAge")); diff != "" || err != nil {
			t.Errorf("%s (%v) (-want +got):\n%s", name, err, diff)
		}
		if got.OldestAge < 20*time.Minute || got.OldestAge > 21*time.Minute || got.Unfinished() != 6 {
			t.Errorf("%s: %d swaps unfinished, the oldest %s old; want 6 and 20 minutes", name, got.Unfinished(), got.OldestAge)
		}
	}
	// An executed swap does not count for the age.
	exec(t, s, `UPDATE swaps SET created_at = now() - interval '1 day' WHERE id = $1`, legs["executed"].ID)
	if got, err := s.Swaps(ctx, 1); err != nil || got.OldestAge > time.Hour {
		t.Errorf("the oldest age is %s (%v), want the age of an unfinished swap, 20 minutes", got.OldestAge, err)
	}
}

func TestSwapsAreListedWithTheirHoldReason(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	legs := swapsInEachState(t, s)
	names := map[uuid.UUID]string{}
	for name, l := range legs {
		names[*get(t, s, l.ID).Parent] = name
	}
	list := func(got []ListedSwap, err error) (out []string) {
		t.Helper()
		ok(t, err)
		for i := range got {
			out = append(out, names[got[i].ID])
		}
		return out
	}
	open := []string{"no timeout", "new", "leased", "waiting", "delayed", "quoted", "executed", "refunded"}
	if diff := cmp.Diff(open, list(s.ListSwaps(ctx, 100))); diff != "" {
		t.Errorf("open swaps in the order of their timeouts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(open[:3], list(s.ListSwaps(ctx, 3))); diff != "" {
		t.Errorf("first three open swaps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"failed", "final"}, list(s.ListFinalSwaps(ctx, 100))); diff != "" {
		t.Errorf("ended swaps, the last funded first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"failed"}, list(s.ListFinalSwaps(ctx, 1))); diff != "" {
		t.Errorf("first ended swap (-want +got):\n%s", diff)
	}
	want := map[string]ListedSwap{
		"new":        {Phase: submission.PhaseFunded, State: submission.Pending, TimeoutSlot: 110},
		"leased":     {Phase: submission.PhaseFunded, State: submission.Processing, TimeoutSlot: 120, Leased: true},
		"waiting":    {Phase: submission.PhaseFunded, State: submission.Processing, TimeoutSlot: 130, HeldBy: "swap_price"},
		"delayed":    {Phase: submission.PhaseFunded, State: submission.Processing, TimeoutSlot: 140, Tries: 1},
		"quoted":     {Phase: submission.PhaseQuoted, State: submission.Processing, TimeoutSlot: 150, Leased: true, Attempts: 3, Live: 2},
		"executed":   {Phase: submission.PhaseExecuted, State: submission.Completed, TimeoutSlot: 160, Leased: true, Signature: &solana.Signature{5}},
		"refunded":   {Phase: submission.PhaseRefunded, State: submission.Completed, TimeoutSlot: 180, Leased: true, Signature: &solana.Signature{7}},
		"no timeout": {Phase: submission.PhaseFunded, State: submission.Processing, Leased: true},
		"final":      {Phase: submission.PhaseExecuted, State: submission.Completed, TimeoutSlot: 170, Final: true, Signature: &solana.Signature{6}},
		"failed":     {Phase: submission.PhaseFunded, State: submission.Failed, TimeoutSlot: 190, Final: true, Error: "program_error"},
	}
	all, err := s.ListSwaps(ctx, 100)
	ok(t, err)
	ended, err := s.ListFinalSwaps(ctx, 100)
	ok(t, err)
	for _, l := range append(all, ended...) {
		name := names[l.ID]
		if diff := cmp.Diff(want[name], l, cmpopts.IgnoreFields(l, "ID", "JobID", "Age", "DueIn")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if job := one[int64](t, s, `SELECT job_id FROM submissions WHERE id = $1`, legs[name].ID); l.JobID != job || l.Age < 10*time.Minute {
			t.Errorf("%s has job %d and age %s, want %d and at least 10 minutes", name, l.JobID, l.Age, job)
		}
		if released := name == "waiting" || name == "delayed"; (l.DueIn > 50*time.Minute) != released {
			t.Errorf("%s is due in %s; an hour is expected: %t", name, l.DueIn, released)
		}
		if overdue := name == "new" || name == "leased"; l.Overdue(125) != overdue {
			t.Errorf("%s is overdue: %t, want %t", name, l.Overdue(125), overdue)
		}
	}
}

func TestLatestTreeSlot(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	if slot, ago, err := s.LatestTreeSlot(ctx); slot != 0 || ago != 0 || err != nil {
		t.Errorf("without a recorded slot: slot %d, %s ago (%v); want zeros", slot, ago, err)
	}
	ok(t, s.RecordTreeSlot(ctx, testPool, 50))
	ok(t, s.RecordTreeSlot(ctx, solana.PublicKey{10}, 70))
	exec(t, s, `UPDATE sightings SET seen_at = now() - interval '1 hour' WHERE slot = 70`)
	if slot, ago, err := s.LatestTreeSlot(ctx); slot != 70 || ago < time.Hour || ago > 2*time.Hour || err != nil {
		t.Errorf("slot %d, %s ago (%v); want 70, an hour ago", slot, ago, err)
	}
}

func TestRetentionDeletesBothLegsTogether(t *testing.T) {
	t.Parallel()
	const keep = 24 * time.Hour
	old, young := 48*time.Hour, time.Hour
	tests := map[string]struct {
		first, second       time.Duration // time since the leg finished; 0 if it did not
		failed, noSecondLeg bool
		stays               bool
		confirmed           bool // the second leg is confirmed, but not final
	}{
		"both are old":                           {old, old, false, false, false, false},
		"the second is young":                    {old, young, false, false, true, false},
		"the first is young":                     {young, old, false, false, true, false},
		"the second is not final":                {old, old, false, false, true, true},
		"the second is not finished":             {old, 0, false, false, true, false},
		"the first is not final":                 {0, old, false, false, true, false},
		"both failed":                            {old, old, true, false, false, false},
		"both failed just now":                   {young, young, true, false, true, false},
		"the first failed without a second":      {old, 0, true, true, false, false},
		"the first just failed without a second": {young, 0, true, true, true, false},
		"neither is finished":                    {0, 0, false, false, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := open(t), t.Context()
			w := worker(t, s)
			sub, err := s.Accept(ctx, swap(1, 0), nil, &w)
			ok(t, err)
			first := sub.Lease()
			ok(t, s.RecordAttempt(ctx, first, attempt(20)))
			legs := 1
			if !test.noSecondLeg {
				legs = 2
				complete(t, s, landing(first, 20))
				c := claimSecondLegs(t, s, w)[0]
				ok(t, s.RecordAttempt(ctx, c.Lease, attemptFor(1, txmgr.PurposeExecute)))
				if test.second > 0 && !test.failed {
					complete(t, s, secondLegLanding(c.Lease, 1, submission.PhaseExecuted))
					if !test.confirmed {
						finalize(t, s, secondLegLanding(c.Lease, 1, submission.PhaseExecuted))
					}
				}
				if test.failed {
					ok(t, s.Reopen(ctx, first))
				}
			}
			switch {
			case test.failed:
				ok(t, s.MarkAttemptsDead(ctx, first, []txmgr.DeadAttempt{{Signature: solana.Signature{20}}}))
				ok(t, s.Fail(ctx, first, refusal.New(refusal.RootNotFound, "stale")))
			case test.first > 0:
				finalize(t, s, landing(first, 20))
			}
			exec(t, s, `UPDATE submissions SET completed_at = now() - CASE WHEN parent IS NULL THEN $1::interval ELSE $2::interval END WHERE completed_at IS NOT NULL`, test.first, test.second)
			reserved := one[int](t, s, `SELECT count(*) FROM reservations`)
			d, err := s.DeleteOld(ctx, keep)
			ok(t, err)
			left := one[[]int](t, s, `SELECT ARRAY[(SELECT count(*) FROM submissions), (SELECT count(*) FROM requests), (SELECT count(*) FROM attempts), (SELECT count(*) FROM swaps)]`)
			want, deleted := []int{legs, 1, legs, legs - 1}, int64(0)
			if !test.stays {
				want, deleted = []int{0, 0, 0, 0}, int64(legs)
			}
			if diff := cmp.Diff(want, left); diff != "" || d.Submissions != deleted {
				t.Errorf("%d deleted, want %d; submissions, requests, attempts and swaps left (-want +got):\n%s", d.Submissions, deleted, diff)
			}
			if got := one[int](t, s, `SELECT count(*) FROM reservations`); got != reserved {
				t.Errorf("%d reservations are left, want all %d", got, reserved)
			}
		})
	}
}

func TestRetentionSkipsOpenSwaps(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	for n := uint64(1); n <= 5; n++ { // final first legs whose second legs wait
		first, _ := funded(t, s, w, n)
		finalize(t, s, landing(first, byte(n)))
	}
	exec(t, s, `UPDATE submissions SET completed_at = now() - interval '9 days' WHERE parent IS NULL`)
	bulk(t, s, 7, "failed")
	if n, err := s.DeleteFinished(ctx, time.Now().Add(-time.Hour), 2); err != nil || n != 7 {
		t.Errorf("%d submissions are deleted (%v), want the 7 failed ones", n, err)
	}
}
