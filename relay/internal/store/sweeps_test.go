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

func TestASweepsRowHasItsOutcome(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := t.Context()
	session := lock(t, s, key(1), key(2))
	defer session.Close()
	first, second := sweepOf(1, key(1)), sweepOf(2, key(2))
	ok(t, session.Record(ctx, first))
	ok(t, session.Record(ctx, second))
	if err := session.Record(ctx, sweepOf(3, key(1))); err == nil {
		t.Error("a payer has two sweeps that may land")
	}
	rest := func(payers, accounts []solana.PublicKey) (signatures []solana.Signature, newest uint64) {
		t.Helper()
		got, newest, err := session.Open(ctx, payers, accounts)
		ok(t, err)
		for _, a := range got {
			signatures = append(signatures, a.Signature)
		}
		return signatures, newest
	}
	got, newest, err := session.Open(ctx, []solana.PublicKey{key(1)}, []solana.PublicKey{key(1)})
	ok(t, err)
	if diff := cmp.Diff([]sweep.Attempt{first}, got); diff != "" || newest != 0 {
		t.Errorf("the newest is of slot %d, and the open one differs (-want +got):\n%s", newest, diff)
	}
	ok(t, session.Resolve(ctx, first.Signature, sweep.EndLanded, 90))
	ok(t, session.Resolve(ctx, first.Signature, sweep.EndExpired, 0)) // too late
	ok(t, session.Resolve(ctx, second.Signature, sweep.EndExpired, 0))
	if err := session.Record(ctx, first); !errors.Is(err, sweep.ErrSameTransaction) {
		t.Errorf("error is %v, want that it is there already", err)
	}
	ok(t, session.Record(ctx, sweepOf(3, key(1))))
	both := []solana.PublicKey{key(1), key(2)}
	if open, newest := rest(both, both); len(open) != 1 || open[0] != (solana.Signature{3}) || newest != 90 {
		t.Errorf("open are %v and the newest landed in slot %d, want the third and 90", open, newest)
	}
	if _, newest := rest(both, []solana.PublicKey{key(9)}); newest != 90 {
		t.Errorf("the newest to a recipient landed in slot %d, want 90", newest)
	}
	if _, newest := rest(both, []solana.PublicKey{key(2)}); newest != 0 {
		t.Errorf("of an account whose sweep expired the newest landed in slot %d", newest)
	}
	attempts, err := s.Ledger().Attempts(ctx, []solana.Signature{first.Signature, second.Signature, {77}})
	ok(t, err)
	want := ledger.Attempt{Kind: "sweep", Moved: 1<<40 + 5}
	if diff := cmp.Diff(map[solana.Signature]ledger.Attempt{first.Signature: want, second.Signature: want}, attempts); diff != "" {
		t.Errorf("the ledger knows others (-want +got):\n%s", diff)
	}
}

func TestOneSweepIsAtWorkOnAKey(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := t.Context()
	first := lock(t, s, key(1), key(2), key(2))
	if _, err := s.Sweeps().Lock(ctx, []solana.PublicKey{key(3), key(2)}); !errors.Is(err, sweep.ErrLocked) {
		t.Errorf("error is %v, want that a key is locked", err)
	}
	lock(t, s, key(3)).Close() // what the refused one had locked is free
	first.Close()
	second := lock(t, s, key(2))
	defer second.Close()

	// The server ends the session: another may begin, and this one can write nothing.
	pid := one[int](t, s, `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()
		AND (classid::bigint << 32 | objid::bigint) = hashtextextended(current_schema() || $1, 0)`, sweepLockPrefix+key(2).String())
	exec(t, s, `SELECT pg_terminate_backend($1, 10000)`, pid)
	third := lock(t, s, key(2))
	defer third.Close()
	if err := second.Record(ctx, sweepOf(1, key(2))); err == nil {
		t.Error("a sweep that lost its lock records a transaction")
	}
	if n := one[int](t, s, `SELECT count(*) FROM sweeps`); n != 0 {
		t.Errorf("%d rows are there, want none", n)
	}
	ok(t, third.Record(ctx, sweepOf(2, key(2))))
}

func TestASilentSessionIsEnded(t *testing.T) {
	t.Parallel()
	s := open(t)
	held := lock(t, s, key(1)).(*session)
	defer held.Close()
	var idle string
	held.mu.Lock()
	err := held.conn.QueryRow(t.Context(), "SHOW idle_session_timeout").Scan(&idle)
	held.mu.Unlock()
	if ok(t, err); idle != "1min" {
		t.Errorf("the server ends it after %q of silence, want 1min", idle)
	}
}

func TestAttemptsAreUnresolvedUntilDeadOrFinal(t *testing.T) {
	t.Parallel()
	s := open(t)
	payer := attempt(1).FeePayer
	unsettled := func(when string, wantOpen, wantUnfinalized int64) {
		t.Helper()
		u, err := s.Sweeps().Unresolved(t.Context(), []solana.PublicKey{key(77), payer})
		ok(t, err)
		if u.Open != wantOpen || u.Unfinalized != wantUnfinalized || (u.Total() > 0) != (u.Oldest > 0) || u.Oldest > time.Minute {
			t.Errorf("%s: %+v, want %d open and %d not final", when, u, wantOpen, wantUnfinalized)
		}
	}
	unsettled("at first", 0, 0)
	landed, died := accept(t, s, withdrawal(1, 2), nil), accept(t, s, withdrawal(3, 4), nil)
	w := worker(t, s)
	claim(t, s, w)
	lease := func(sub *submission.Submission) txmgr.Lease {
		return get(t, s, sub.ID).Lease()
	}
	unsettled("nothing is signed", 0, 0)
	ok(t, s.RecordAttempt(t.Context(), lease(landed), attempt(1)))
	second, other := attempt(2), attempt(3)
	second.FeePayer = payer
	ok(t, s.RecordAttempt(t.Context(), lease(died), second))
	third := accept(t, s, withdrawal(5, 6), nil)
	claim(t, s, w)
	ok(t, s.RecordAttempt(t.Context(), lease(third), other))
	unsettled("two are signed, and one by another payer", 2, 0)
	complete(t, s, landing(lease(landed), 1))
	unsettled("one is confirmed", 1, 1)
	ok(t, s.MarkAttemptsDead(t.Context(), lease(died), []txmgr.DeadAttempt{{Signature: attempt(2).Signature}}))
	unsettled("the other one is dead", 0, 1)
	ok(t, s.Reopen(t.Context(), lease(landed)))
	unsettled("a fork died", 1, 0)
	complete(t, s, landing(lease(landed), 1))
	lapse(t, s, w)
	_, err := s.FreeDeadProcesses(t.Context())
	ok(t, err)
	unsettled("no process tracks it", 0, 1)
	w = worker(t, s)
	_, err = s.ClaimLanded(t.Context(), w, 10)
	ok(t, err)
	finalize(t, s, landing(lease(landed), 1))
	unsettled("it is final", 0, 0)
}
