package store

import (
	"errors"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/sweep"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

func key(n byte) solana.PublicKey { return solana.PublicKey{n} }

func sweepOf(n byte, payer solana.PublicKey) sweep.Attempt {
	return sweep.Attempt{
		Attempt: txmgr.Attempt{
			Signature: solana.Signature{n}, FeePayer: payer, Fee: 5000, Raw: []byte{n, 2}, Blockhash: solana.Hash{n}, BlockhashSlot: 7, LastValidBlockHeight: 157,
		},
		Step: sweep.StepFund, Transfers: []sweep.Transfer{{To: key(8), Lamports: 1 << 40}, {To: key(9), Lamports: 5}},
	}
}

func lock(t *testing.T, s *Store, accounts ...solana.PublicKey) sweep.Session {
	t.Helper()
	session, err := s.Sweeps().Lock(t.Context(), accounts)
	ok(t, err)
	return session
}

func TestSweepsAreRecordedAndResolved(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := t.Context()
	session := lock(t, s, key(1), key(2))
	defer session.Close()
	first, second := sweepOf(1, key(1)), sweepOf(2, key(2))
	ok(t, session.Record(ctx, first))
	ok(t, session.Record(ctx, second))
	if err := session.Record(ctx, sweepOf(3, key(1))); err == nil {
		t.Error("a second open sweep of the same payer is recorded, want an error")
	}
	openSweeps := func(payers, accounts []solana.PublicKey) (signatures []solana.Signature, newest uint64) {
		t.Helper()
		got, newest, err := session.OpenAttempts(ctx, payers, accounts)
		ok(t, err)
		for _, a := range got {
			signatures = append(signatures, a.Signature)
		}
		return signatures, newest
	}
	got, newest, err := session.OpenAttempts(ctx, []solana.PublicKey{key(1)}, []solana.PublicKey{key(1)})
	ok(t, err)
	if diff := cmp.Diff([]sweep.Attempt{first}, got); diff != "" || newest != 0 {
		t.Errorf("newest slot %d, want 0; open sweeps (-want +got):\n%s", newest, diff)
	}
	ok(t, session.Resolve(ctx, first.Signature, sweep.EndLanded, 90))
	ok(t, session.Resolve(ctx, first.Signature, sweep.EndExpired, 0)) // an outcome is recorded already
	ok(t, session.Resolve(ctx, second.Signature, sweep.EndExpired, 0))
	if err := session.Record(ctx, first); !errors.Is(err, sweep.ErrSameTransaction) {
		t.Errorf("recording a sweep again returns %v, want ErrSameTransaction", err)
	}
	ok(t, session.Record(ctx, sweepOf(3, key(1))))
	both := []solana.PublicKey{key(1), key(2)}
	if open, newest := openSweeps(both, both); len(open) != 1 || open[0] != (solana.Signature{3}) || newest != 90 {
		t.Errorf("open sweeps %v, newest landing in slot %d; want the third sweep and 90", open, newest)
	}
	if _, newest := openSweeps(both, []solana.PublicKey{key(9)}); newest != 90 {
		t.Errorf("newest landing of a recipient in slot %d, want 90", newest)
	}
	if _, newest := openSweeps(both, []solana.PublicKey{key(2)}); newest != 0 {
		t.Errorf("newest landing of an account whose sweep expired in slot %d, want 0", newest)
	}
	attempts, err := s.Ledger().Attempts(ctx, []solana.Signature{first.Signature, second.Signature, {77}})
	ok(t, err)
	want := ledger.Attempt{Kind: "sweep", Moved: 1<<40 + 5}
	if diff := cmp.Diff(map[solana.Signature]ledger.Attempt{first.Signature: want, second.Signature: want}, attempts); diff != "" {
		t.Errorf("attempts in the ledger (-want +got):\n%s", diff)
	}
}

func TestOnlyOneSweepLocksAKey(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := t.Context()
	first := lock(t, s, key(1), key(2), key(2))
	if _, err := s.Sweeps().Lock(ctx, []solana.PublicKey{key(3), key(2)}); !errors.Is(err, sweep.ErrLocked) {
		t.Errorf("locking a locked key returns %v, want ErrLocked", err)
	}
	lock(t, s, key(3)).Close() // the refused Lock left key 3 unlocked
	first.Close()
	second := lock(t, s, key(2))
	defer second.Close()

	// The server ends the second session: a third can lock the key, and the second cannot write.
	pid := one[int](t, s, `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()
		AND (classid::bigint << 32 | objid::bigint) = hashtextextended(current_schema() || $1, 0)`, sweepLockPrefix+key(2).String())
	exec(t, s, `SELECT pg_terminate_backend($1, 10000)`, pid)
	third := lock(t, s, key(2))
	defer third.Close()
	if err := second.Record(ctx, sweepOf(1, key(2))); err == nil {
		t.Error("a session that lost its lock records a sweep, want an error")
	}
	if n := one[int](t, s, `SELECT count(*) FROM sweeps`); n != 0 {
		t.Errorf("%d sweeps are stored, want 0", n)
	}
	ok(t, third.Record(ctx, sweepOf(2, key(2))))
}

func TestServerEndsAnIdleSweepSession(t *testing.T) {
	t.Parallel()
	s := open(t)
	locked := lock(t, s, key(1)).(*session)
	defer locked.Close()
	var idle string
	locked.mu.Lock()
	err := locked.conn.QueryRow(t.Context(), "SHOW idle_session_timeout").Scan(&idle)
	locked.mu.Unlock()
	if ok(t, err); idle != "1min" {
		t.Errorf("idle_session_timeout is %q, want 1min", idle)
	}
}

func TestAttemptsAreUnresolvedUntilDeadOrFinal(t *testing.T) {
	t.Parallel()
	s := open(t)
	payer := attempt(1).FeePayer
	wantUnresolved := func(when string, wantOpen, wantUnfinalized int64) {
		t.Helper()
		u, err := s.Sweeps().Unresolved(t.Context(), []solana.PublicKey{key(77), payer})
		ok(t, err)
		if u.Open != wantOpen || u.Unfinalized != wantUnfinalized || (u.Total() > 0) != (u.Oldest > 0) || u.Oldest > time.Minute {
			t.Errorf("%s: %+v, want %d open and %d unfinalized", when, u, wantOpen, wantUnfinalized)
		}
	}
	wantUnresolved("at first", 0, 0)
	landed, dead := accept(t, s, withdrawal(1, 2), nil), accept(t, s, withdrawal(3, 4), nil)
	w := worker(t, s)
	claim(t, s, w)
	lease := func(sub *submission.Submission) txmgr.Lease {
		return get(t, s, sub.ID).Lease()
	}
	wantUnresolved("nothing is signed", 0, 0)
	ok(t, s.RecordAttempt(t.Context(), lease(landed), attempt(1)))
	second, other := attempt(2), attempt(3)
	second.FeePayer = payer
	ok(t, s.RecordAttempt(t.Context(), lease(dead), second))
	third := accept(t, s, withdrawal(5, 6), nil)
	claim(t, s, w)
	ok(t, s.RecordAttempt(t.Context(), lease(third), other))
	wantUnresolved("two are signed by the payer, one by another", 2, 0)
	complete(t, s, landing(lease(landed), 1))
	wantUnresolved("one is confirmed", 1, 1)
	ok(t, s.MarkAttemptsDead(t.Context(), lease(dead), []txmgr.DeadAttempt{{Signature: attempt(2).Signature}}))
	wantUnresolved("the other is dead", 0, 1)
	ok(t, s.Reopen(t.Context(), lease(landed)))
	wantUnresolved("the confirmed one is rolled back", 1, 0)
	complete(t, s, landing(lease(landed), 1))
	expireWorker(t, s, w)
	_, err := s.FreeDeadProcesses(t.Context())
	ok(t, err)
	wantUnresolved("no process tracks the confirmed one", 0, 1)
	w = worker(t, s)
	_, err = s.ClaimLanded(t.Context(), w, 10)
	ok(t, err)
	finalize(t, s, landing(lease(landed), 1))
	wantUnresolved("the confirmed one is final", 0, 0)
	overtaken := get(t, s, accept(t, s, withdrawal(7, 8), nil).ID)
	claim(t, s, w)
	first := attempt(4)
	first.FeePayer = payer
	ok(t, s.RecordAttempt(t.Context(), lease(overtaken), first))
	ok(t, s.RecordAttempt(t.Context(), lease(overtaken), attempt(5)))
	complete(t, s, landing(lease(overtaken), 5))
	finalize(t, s, landing(lease(overtaken), 5))
	wantUnresolved("an attempt of another payer overtook one that may still land", 0, 1)
	exec(t, s, `UPDATE submissions SET completed_at = now() - interval '6 minutes'`)
	wantUnresolved("the overtaken attempt can land no more", 0, 0)
}
