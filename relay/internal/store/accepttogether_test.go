package store

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/relaypool/relaypool/relay/batch"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

// together runs calls that share a batch of q, because they wait while another call runs. It returns
// their errors in the order of the calls, and the sizes of all batches.
func together[In, Out any](t *testing.T, q *batch.Queue[In, Out], calls ...func() error) (errs []error, sizes []int) {
	t.Helper()
	run, errs := q.Run, make([]error, len(calls))
	q.Stall = 0
	began, end := make(chan struct{}), make(chan struct{})
	q.Run = func(ctx context.Context, calls []In) ([]Out, error) {
		select {
		case <-began:
			sizes = append(sizes, len(calls))
			return run(ctx, calls)
		default: // the other call
			close(began)
			<-end
			return make([]Out, len(calls)), nil
		}
	}
	defer func() { q.Run, q.Stall = run, batchStall }()
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = q.Do(t.Context(), *new(In)) })
	<-began
	for i, call := range calls {
		wg.Go(func() { errs[i] = call() })
		for q.Waiting() <= i {
			time.Sleep(time.Millisecond)
		}
	}
	close(end)
	wg.Wait()
	return errs, sizes
}

// Each request gets the answer that it would get alone, whatever the others of its batch are.
func TestAcceptsThatShareAStatement(t *testing.T) {
	t.Parallel()
	key, other := make([]byte, 32), append(make([]byte, 31), 1)
	type request struct {
		sub        *submission.Submission
		key        []byte
		wantCode   refusal.Code // "" when accepted
		wantRepeat int          // 1 more than the index of the request that it repeats; 0 for none
	}
	otherRecipient := withdrawal(1, 2)
	otherRecipient.Call.Recipient[0]++
	damaged := withdrawal(3, 4)
	damaged.Call.Proof = damaged.Call.Proof[1:]
	tests := map[string]struct {
		stored    *submission.Submission // and its key
		storedKey []byte
		requests  []request
		wantSizes []int // of batches
		wantRows  int
	}{
		"requests without anything in common": {
			requests:  []request{{sub: withdrawal(1, 2), key: key}, {sub: transfer(3), key: other}, {sub: swap(4, 0)}},
			wantSizes: []int{3}, wantRows: 3,
		},
		"two with the same note": {
			requests:  []request{{sub: withdrawal(1, 2)}, {sub: withdrawal(2, 3), wantCode: refusal.NullifierReserved}, {sub: withdrawal(4, 0)}},
			wantSizes: []int{3}, wantRows: 2,
		},
		"two with the same content": {
			requests:  []request{{sub: withdrawal(1, 2)}, {sub: withdrawal(1, 2), wantRepeat: 1}, {sub: otherRecipient, wantCode: refusal.NullifierReserved}},
			wantSizes: []int{3}, wantRows: 1,
		},
		"two with the same key": {
			requests:  []request{{sub: withdrawal(1, 2), key: key}, {sub: withdrawal(3, 4), key: key, wantCode: refusal.IdempotencyKeyReused}, {sub: withdrawal(5, 0), key: other}},
			wantSizes: []int{3}, wantRows: 2,
		},
		"one with a note of an older submission": {
			stored:    withdrawal(9, 0),
			requests:  []request{{sub: withdrawal(1, 2)}, {sub: withdrawal(8, 9), wantCode: refusal.NullifierReserved}, {sub: withdrawal(3, 0)}},
			wantSizes: []int{3}, wantRows: 3,
		},
		"one with the key of an older submission": {
			stored: withdrawal(9, 0), storedKey: key,
			requests:  []request{{sub: withdrawal(1, 2), key: other}, {sub: withdrawal(8, 7), key: key, wantCode: refusal.IdempotencyKeyReused}},
			wantSizes: []int{2}, wantRows: 2,
		},
		"one that the database refuses": {
			requests:  []request{{sub: withdrawal(1, 2)}, {sub: damaged, wantCode: "other"}, {sub: withdrawal(5, 0)}},
			wantSizes: []int{3}, wantRows: 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			if test.stored != nil {
				accept(t, s, test.stored, test.storedKey)
			}
			living := worker(t, s)
			got, calls := make([]*submission.Submission, len(test.requests)), make([]func() error, len(test.requests))
			for i, r := range test.requests {
				calls[i] = func() (err error) {
					w := &living
					if i%2 == 1 {
						w = nil
					}
					got[i], err = s.Accept(t.Context(), r.sub, r.key, w)
					return err
				}
			}
			errs, sizes := together(t, s.accepts, calls...)
			if diff := cmp.Diff(test.wantSizes, sizes); diff != "" {
				t.Errorf("sizes of batches (-want +got):\n%s", diff)
			}
			for i, r := range test.requests {
				want := r.sub
				if r.wantRepeat > 0 {
					want = test.requests[r.wantRepeat-1].sub
				}
				code, isRefusal := refusal.As(errs[i])
				switch {
				case r.wantCode == "other" && errs[i] != nil && !isRefusal:
				case r.wantCode != "" && isRefusal && code.Code == r.wantCode:
				case r.wantCode != "" || errs[i] != nil || got[i].ID != want.ID:
					t.Errorf("request %d gets %+v, error %v; want code %q or submission %s", i, got[i], errs[i], r.wantCode, want.ID)
				case r.wantRepeat == 0:
					if wantEpoch := int64(1 - i%2); got[i].Epoch != wantEpoch {
						t.Errorf("request %d has epoch %d, want %d: a worker is named by each second request", i, got[i].Epoch, wantEpoch)
					}
					if diff := cmp.Diff(got[i], get(t, s, got[i].ID)); diff != "" {
						t.Errorf("request %d: stored submission (-want +got):\n%s", i, diff)
					}
				}
			}
			if rows := one[int](t, s, `SELECT count(*) FROM submissions`); rows != test.wantRows {
				t.Errorf("%d submissions are stored, want %d", rows, test.wantRows)
			}
			if n := one[int](t, s, `SELECT count(*) FROM reservations v FULL JOIN (SELECT submission_id, unnest(spends) AS spend FROM requests) r
				ON r.submission_id = v.submission_id AND r.spend = v.nullifier WHERE r IS NULL OR v IS NULL`); n != 0 {
				t.Errorf("%d nullifiers are reserved or requested, but not both", n)
			}
		})
	}
}

// The row of a client that leaves may be committed, so its process has to learn the outcome.
func TestAnAcceptOutlivesItsClient(t *testing.T) {
	t.Parallel()
	s := open(t)
	w := worker(t, s)
	client, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	left, other := withdrawal(1, 2), withdrawal(3, 4)
	errs, sizes := together(t, s.accepts,
		func() error { _, err := s.Accept(client, left, nil, &w); return err },
		func() error { leave(); _, err := s.Accept(t.Context(), other, nil, &w); return err })
	ok(t, errors.Join(errs...))
	if diff := cmp.Diff([]int{2}, sizes); diff != "" || left.Epoch != 1 || get(t, s, left.ID).Owner != w {
		t.Errorf("the submission of the client that left has epoch %d, want 1 and this process as its owner; sizes of batches (-want +got):\n%s", left.Epoch, diff)
	}
}

// A batch of attempts writes those whose leases are held, and no other.
func TestAttemptsThatShareAStatement(t *testing.T) {
	t.Parallel()
	s := open(t)
	w, dead := worker(t, s), worker(t, s)
	held, swapLeg := stateOf(t, s, submission.Processing, w, 1), secondLegOf(t, s, submission.Processing, w, 2)
	lost, ofDead := stateOf(t, s, submission.Processing, w, 3), stateOf(t, s, submission.Processing, dead, 4)
	ok(t, s.Release(t.Context(), lost, 0, ""))
	expireWorker(t, s, dead)
	transferSub, err := s.Accept(t.Context(), transfer(50), nil, &w)
	ok(t, err)
	unknown := held
	unknown.ID = uuid.New()
	otherEpoch := held
	otherEpoch.Epoch++
	before := total(t, s)
	record := func(l txmgr.Lease, a txmgr.Attempt) func() error {
		return func() error { return s.RecordAttempt(t.Context(), l, a) }
	}
	errs, sizes := together(t, s.attempts, record(lost, attempt(100)), record(held, attempt(101)), record(ofDead, attempt(102)), record(swapLeg, attemptFor(103, txmgr.PurposeExecute)),
		record(unknown, attempt(104)), record(transferSub.Lease(), attempt(105)), record(otherEpoch, attempt(106)), record(otherEpoch, attempt(101)))
	for i, wantLost := range []bool{true, false, true, false, true, false, true, true} {
		if errors.Is(errs[i], txmgr.ErrLeaseLost) != wantLost || !wantLost && errs[i] != nil {
			t.Errorf("call %d: error %v; want ErrLeaseLost: %t", i, errs[i], wantLost)
		}
	}
	if !cmp.Equal(sizes, []int{8}) {
		t.Errorf("batches have sizes %v, want one of 8", sizes)
	}
	if n := one[int](t, s, `SELECT count(*) FROM attempts WHERE signature >= '\x64'`); n != 3 {
		t.Errorf("%d attempts are stored, want 3", n)
	}
	if p := phase(t, s, swapLeg.ID); p != submission.PhaseQuoted {
		t.Errorf("the swap's phase is %q, want quoted", p)
	}
	after := total(t, s)
	for transfer, want := range map[bool]int64{false: 1101, true: 1105} { // a swap's second leg books nothing
		if got := after[transfer] - before[transfer]; got != want {
			t.Errorf("%d lamports are booked (transfer: %t), want %d", got, transfer, want)
		}
	}

	errs, sizes = together(t, s.attempts, record(held, attempt(107)), record(transferSub.Lease(), attempt(101)), record(lost, attempt(108)))
	if errs[0] != nil || errs[1] == nil || errors.Is(errs[1], txmgr.ErrLeaseLost) || !errors.Is(errs[2], txmgr.ErrLeaseLost) || !cmp.Equal(sizes, []int{3}) {
		t.Errorf("with a signature that is stored already, in batches of %v: errors %v; want one batch, and an error of the database for that attempt alone", sizes, errs)
	}
}

func TestReadsThatShareAStatement(t *testing.T) {
	t.Parallel()
	s := open(t)
	first, second := accept(t, s, withdrawal(1, 0), nil), accept(t, s, swap(2, 0), nil)
	exec(t, s, `UPDATE requests SET public_inputs = $1 WHERE submission_id = $2`, append([]byte{255}, make([]byte, 263)...), accept(t, s, withdrawal(3, 0), nil).ID)
	damaged := one[uuid.UUID](t, s, `SELECT submission_id FROM requests WHERE get_byte(public_inputs, 0) = 255`)
	ids := []uuid.UUID{first.ID, second.ID, uuid.New(), damaged, first.ID}
	got, calls := make([]*submission.Submission, len(ids)), make([]func() error, len(ids))
	for i, id := range ids {
		calls[i] = func() (err error) {
			got[i], err = s.Get(t.Context(), id)
			return err
		}
	}
	errs, sizes := together(t, s.reads, calls...)
	if diff := cmp.Diff([]*submission.Submission{first, second, nil, nil, first}, got); diff != "" || !cmp.Equal(sizes, []int{5}) {
		t.Errorf("in batches of %v, submissions (-want +got):\n%s", sizes, diff)
	}
	if got[0] == got[4] {
		t.Error("two callers share one submission, which either may change")
	}
	_ = wantCode(t, errs[2], refusal.NotFound)
	if errs[3] == nil || errs[0] != nil || errs[1] != nil || errs[4] != nil {
		t.Errorf("errors are %v, want one for the damaged row, and not_found", errs)
	}
}

func TestRepeatsThatShareAStatement(t *testing.T) {
	t.Parallel()
	s := open(t)
	key := append(make([]byte, 31), 7)
	first, second := accept(t, s, withdrawal(1, 2), key), accept(t, s, withdrawal(3, 0), nil)
	requests := []struct {
		sub  *submission.Submission
		key  []byte
		want *submission.Submission
		code refusal.Code
	}{
		{withdrawal(1, 2), nil, first, ""},
		{withdrawal(1, 2), key, first, ""},
		{withdrawal(4, 0), key, nil, refusal.IdempotencyKeyReused},
		{withdrawal(3, 0), make([]byte, 32), second, ""},
		{withdrawal(5, 3), nil, nil, refusal.NullifierReserved},
		{withdrawal(6, 0), make([]byte, 32), nil, ""},
	}
	got, calls := make([]*submission.Submission, len(requests)), make([]func() error, len(requests))
	for i, r := range requests {
		calls[i] = func() (err error) {
			got[i], err = s.FindRepeated(t.Context(), r.sub, r.key)
			return err
		}
	}
	errs, sizes := together(t, s.repeats, calls...)
	for i, r := range requests {
		code, _ := refusal.As(errs[i])
		if r.code != "" && (code == nil || code.Code != r.code) || r.code == "" && errs[i] != nil || (got[i] == nil) != (r.want == nil) || r.want != nil && got[i].ID != r.want.ID {
			t.Errorf("request %d finds %+v, error %v; want code %q", i, got[i], errs[i], r.code)
		}
	}
	if !cmp.Equal(sizes, []int{len(requests)}) {
		t.Errorf("batches have sizes %v, want one of %d", sizes, len(requests))
	}
}

// When the server dies under a batch, all of its callers are told, and none tries again by itself: the
// batch may have been committed. Their next requests are answered as after any outage.
func TestABatchOfAcceptsDuringARestart(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	s := openOn(t, server.URL("postgres"))
	w := worker(t, s)
	calls := make([]func() error, 10)
	for i := range calls {
		calls[i] = func() error {
			_, err := s.Accept(t.Context(), withdrawal(uint64(i)+1, 0), nil, &w)
			return err
		}
	}
	tx := begin(t, s) // so that the batch waits
	_, err := tx.Exec(t.Context(), `INSERT INTO reservations (pool, nullifier, submission_id) VALUES ($1, $2, $3)`, testPool.Bytes(), withdrawal(5, 0).Call.Inputs.Nullifiers[0][:], uuid.New())
	ok(t, err)
	var errs []error
	var sizes []int
	var accepts sync.WaitGroup
	accepts.Go(func() { errs, sizes = together(t, s.accepts, calls...) })
	waitForLock(t, s)
	ok(t, server.Restart(t.Context()))
	accepts.Wait()
	s.Pool.Reset() // its other connections are broken too
	for _, err := range errs {
		_ = wantCode(t, err, refusal.DatabaseUnavailable)
	}
	if !cmp.Equal(sizes, []int{10}) {
		t.Errorf("batches have sizes %v, want one of 10", sizes)
	}
	if n := one[int](t, s, `SELECT count(*) FROM submissions`); n != 0 {
		t.Errorf("%d submissions are stored, want none", n)
	}
	errs, _ = together(t, s.accepts, calls...)
	ok(t, errors.Join(errs...))
	if n := one[int](t, s, `SELECT count(*) FROM submissions WHERE lease_owner = $1`, w); n != 10 {
		t.Errorf("%d submissions are stored under the lease, want 10", n)
	}
}

// Batches of several processes reserve common notes, and use common keys, in one order.
func TestBatchesOfTwoProcessesDoNotDeadlock(t *testing.T) {
	t.Parallel()
	key := func(n uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 24), n) }
	tests := map[string]struct {
		lock string // locks what is common to both batches and in the middle of them
		call func(process, n uint64) acceptCall
	}{
		"common notes": {
			`INSERT INTO reservations (pool, nullifier, submission_id) VALUES ($1, $2, gen_random_uuid())`,
			func(_, n uint64) acceptCall { return acceptCall{sub: withdrawal(n, 0)} },
		},
		"common keys": {
			`INSERT INTO idempotency_keys (key_hash, content_hash, submission_id) VALUES ($2, $1, gen_random_uuid())`,
			func(process, n uint64) acceptCall {
				return acceptCall{sub: withdrawal(1000*process+n, 0), keyHash: key(n)}
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			tx := begin(t, s) // both batches wait for it when they have written a half
			_, err := tx.Exec(t.Context(), test.lock, testPool.Bytes(), key(5))
			ok(t, err)
			var wrote [2]int
			var batches sync.WaitGroup
			for process, order := range [][]uint64{{1, 2, 5, 8, 9}, {9, 8, 5, 2, 1}} {
				var calls []acceptCall
				for _, n := range order {
					c := test.call(uint64(process+1), n)
					c.spends = byteSlices(nullifiersOf(c.sub))
					calls = append(calls, c)
				}
				batches.Go(func() {
					rows, err := s.insertRows(t.Context(), calls)
					var pg *pgconn.PgError
					if err != nil && (!errors.As(err, &pg) || pg.Code != overlapState) {
						t.Errorf("process %d: %v", process+1, err)
					}
					wrote[process] = len(rows)
				})
			}
			waitForLocks(t, s, 2)
			ok(t, tx.Rollback(t.Context()))
			batches.Wait()
			if wrote != [2]int{5, 0} && wrote != [2]int{0, 5} {
				t.Errorf("the processes wrote %v submissions, want all of one process", wrote)
			}
		})
	}
}
