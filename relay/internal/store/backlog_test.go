package store

import (
	"log/slog"
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

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestGetUnknown(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, err := s.Get(t.Context(), uuid.New())
	_ = wantCode(t, err, refusal.NotFound)
}

func TestBacklogSeparatesDueHeldAndScheduled(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	release := func(n uint64, delay time.Duration, hold string) uuid.UUID {
		l := stateOf(t, s, submission.Processing, w, n)
		ok(t, s.Release(ctx, l, delay, hold))
		return l.ID
	}
	for n, hold := range []string{"fee_payer_empty", "fee_payer_empty", "pool_not_initialised", ""} {
		release(uint64(n)+1, time.Hour, hold) // three are held, the last is only scheduled
	}
	_ = stateOf(t, s, submission.Processing, w, 5)
	_ = stateOf(t, s, submission.Completed, w, 6)
	_ = stateOf(t, s, submission.Failed, w, 7)
	release(8, 0, "")
	urgent := withdrawal(9, 0)
	accept(t, s, urgent, nil)
	exec(t, s, `UPDATE submissions SET root_seq = CASE WHEN id = $1 THEN 1 ELSE 5 END, created_at = now() - CASE WHEN id = $1 THEN interval '1 min' ELSE interval '2 min' END`, urgent.ID)
	exec(t, s, `UPDATE submissions SET due_at = now() - interval '30 s' WHERE id = $1`, urgent.ID) // the other due submission became due just now

	b, err := s.Backlog(ctx)
	ok(t, err)
	want := submission.Backlog{Pending: 1, Processing: 6, Due: 2, Held: map[string]int64{"fee_payer_empty": 2, "pool_not_initialised": 1}}
	if diff := cmp.Diff(want, b, cmpopts.IgnoreFields(want, "OldestAge", "OldestDue", "QueuedJobs")); diff != "" {
		t.Errorf("backlog (-want +got):\n%s", diff)
	}
	if b.OldestAge < time.Minute || b.OldestAge > 2*time.Minute || b.OldestDue < 30*time.Second || b.OldestDue > time.Minute {
		t.Errorf("the oldest pending one is %s old and the first due one has been due for %s; want 1 minute and 30 seconds", b.OldestAge, b.OldestDue)
	}
	jobs := []int64{one[int64](t, s, `SELECT job_id FROM submissions WHERE id = $1`, urgent.ID), 1, 2, 3, 4, 5, 8}
	if diff := cmp.Diff(jobs, b.QueuedJobs); diff != "" {
		t.Errorf("queued jobs (-want +got):\n%s", diff)
	}
}

func TestBacklogListsAHundredJobs(t *testing.T) {
	t.Parallel()
	s := open(t)
	bulk(t, s, 250, "pending")
	if b, err := s.Backlog(t.Context()); err != nil || len(b.QueuedJobs) != 100 || b.Pending != 250 {
		t.Errorf("%d jobs listed, %d pending (%v); want 100 and 250", len(b.QueuedJobs), b.Pending, err)
	}
}

func TestDueCountsAsHeldWhenEveryLiveWorkerIsPaused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		living  []string // the pause reason of each live worker
		dead    []string // the pause reason of each dead worker
		wantDue int64
		want    map[string]int64
	}{
		"no worker":                          {nil, nil, 3, map[string]int64{}},
		"one worker is not paused":           {[]string{"fee_payer_empty", ""}, nil, 3, map[string]int64{}},
		"all are paused":                     {[]string{"fee_payer_empty", "fee_payer_empty"}, nil, 0, map[string]int64{"fee_payer_empty": 3}},
		"all are paused, with two reasons":   {[]string{"fee_payer_empty", "chain_unavailable", "chain_unavailable"}, nil, 0, map[string]int64{"chain_unavailable": 3}},
		"only a dead worker is not paused":   {[]string{"fee_payer_empty"}, []string{""}, 0, map[string]int64{"fee_payer_empty": 3}},
		"only a dead worker has been paused": {[]string{""}, []string{"fee_payer_empty"}, 3, map[string]int64{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := open(t), t.Context()
			for n := range uint64(3) {
				accept(t, s, withdrawal(n+1, 0), nil)
			}
			for _, hold := range test.living {
				_, err := s.Heartbeat(ctx, txmgr.Worker{ID: uuid.New(), PausedBy: hold}, time.Minute)
				ok(t, err)
			}
			for _, hold := range test.dead {
				w := txmgr.Worker{ID: uuid.New(), PausedBy: hold}
				_, err := s.Heartbeat(ctx, w, time.Minute)
				ok(t, err)
				expireWorker(t, s, w.ID)
			}
			b, err := s.Backlog(ctx)
			ok(t, err)
			if b.Due != test.wantDue || !cmp.Equal(b.Held, test.want) || (b.OldestDue > 0) != (b.Due > 0) {
				t.Errorf("%d due (oldest %s), held %v; want %d, %v", b.Due, b.OldestDue, b.Held, test.wantDue, test.want)
			}
		})
	}
}

func queued(q submission.QueueByRoot) (n int) {
	for _, r := range q.Waiting {
		n += r.Submissions
	}
	return n + q.InFlight
}

func TestQueueByRootCountsWhatHasNotLanded(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	add := func(n, seq uint64, state submission.State) {
		l := stateOf(t, s, state, w, n)
		exec(t, s, `UPDATE submissions SET root_seq = $2 WHERE id = $1`, l.ID, seq)
	}
	add(2, 6, submission.Processing)
	add(3, 4, submission.Completed)
	add(4, 4, submission.Failed)
	add(7, 5, submission.Processing)
	exec(t, s, `UPDATE submissions SET hold_reason = $2 WHERE root_seq = $1`, 5, txmgr.HoldExpiry)
	add(9, 5, submission.Processing)
	exec(t, s, `UPDATE submissions SET hold_reason = $2 WHERE root_seq = $1 AND hold_reason IS NULL`, 5, submission.HoldFormat)
	other := withdrawal(5, 0)
	other.Pool, other.RootSeq = solana.PublicKey{10}, 4
	accept(t, s, other, nil)
	add(1, 4, submission.Pending) // last, because the others claim what is pending
	add(6, 8, submission.Pending)
	tests := map[string]struct {
		oldest uint64
		want   submission.QueueByRoot
	}{
		"those with an owner are in flight, others wait by root, and those that wait for an attempt's end or another format do not count": {
			0, submission.QueueByRoot{InFlight: 1, Waiting: []submission.AtRoot{{Seq: 4, Submissions: 1}, {Seq: 8, Submissions: 1}}},
		},
		"the oldest root in the root history counts": {
			4, submission.QueueByRoot{InFlight: 1, Waiting: []submission.AtRoot{{Seq: 4, Submissions: 1}, {Seq: 8, Submissions: 1}}},
		},
		"a root that left the root history does not count": {
			7, submission.QueueByRoot{Waiting: []submission.AtRoot{{Seq: 8, Submissions: 1}}},
		},
	}
	for name, test := range tests {
		got, err := s.QueueByRoot(ctx, testPool, test.oldest)
		ok(t, err)
		if diff := cmp.Diff(got, test.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

// Submissions that wait for a second endpoint count as held even while they are leased, and do not
// count as ahead.
func TestSubmissionsWaitingForASecondEndpointCountAsHeld(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	var leases []txmgr.Lease
	for n := range uint64(3) {
		leases = append(leases, stateOf(t, s, submission.Processing, w, n+1))
	}
	lost := leases[2]
	lost.Epoch++
	ok(t, s.MarkHeld(ctx, []txmgr.Lease{leases[0], leases[1], lost}, txmgr.HoldSecondEndpoint))
	if q, err := s.QueueByRoot(ctx, testPool, 0); err != nil || q.InFlight != 1 {
		t.Errorf("the queue is %+v (%v), want only the one that is not held", q, err)
	}
	b, err := s.Backlog(ctx)
	if err != nil || b.Held[txmgr.HoldSecondEndpoint] != 2 || b.Processing != 3 {
		t.Errorf("backlog is %+v (%v), want 2 of 3 held", b, err)
	}
	complete(t, s, landing(leases[0], 1))
	ok(t, s.Release(ctx, leases[1], 0, ""))
	if b, err = s.Backlog(ctx); err != nil || b.Held[txmgr.HoldSecondEndpoint] != 0 {
		t.Errorf("backlog is %+v (%v), want none held after an outcome and a release", b, err)
	}
}

func TestBacklogAgesDoNotDependOnTheOrderOfGroups(t *testing.T) {
	t.Parallel()
	groups := []group{
		{State: submission.Pending, Free: true, Count: 1, Age: 90, Wait: 60},
		{State: submission.Pending, Hold: txmgr.HoldHistory, Count: 1, Age: 300, Wait: -30},
		{State: submission.Pending, Count: 1, Age: 10, Wait: -30},
		{State: submission.Processing, Free: true, Count: 1, Age: 900, Wait: 20},
	}
	for range groups {
		groups = append(groups[1:], groups[0])
		if b := tally(groups, nil, nil); b.OldestAge != 5*time.Minute || b.OldestDue != time.Minute {
			t.Errorf("groups %+v: oldest age %s, longest due %s; want 5m and 1m", groups, b.OldestAge, b.OldestDue)
		}
	}
}
