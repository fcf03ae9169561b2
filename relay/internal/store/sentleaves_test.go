package store

import (
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

func TestSentLeavesAreOfSubmissionsThatMayStillLand(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	n := byte(0)
	leaves := func(n byte) [][32]byte { return [][32]byte{{30: n, 31: 1}, {30: n, 31: 2}} }
	with := func(change func(*submission.Submission)) *txmgr.Job {
		n++
		sub := withdrawal(uint64(2*n), uint64(2*n+1))
		sub.Call.Inputs.Commitments = [2][32]byte(leaves(n))
		change(sub)
		return acceptLeased(t, s, sub)
	}
	send := func(j *txmgr.Job) txmgr.Lease {
		ok(t, s.RecordAttempt(ctx, j.Lease, attempt(n)))
		return j.Lease
	}
	same := func(*submission.Submission) {}

	with(same) // not sent
	sent := with(func(s *submission.Submission) { s.RootSeq = 9 })
	send(sent)
	second := attempt(100)
	ok(t, s.RecordAttempt(ctx, sent.Lease, second))
	send(with(func(s *submission.Submission) { s.RootSeq = 8; s.Call.Inputs.Commitments[1] = [32]byte{} }))
	dead := send(with(same))
	ok(t, s.MarkAttemptsDead(ctx, dead, []txmgr.DeadAttempt{{Signature: attempt(n).Signature}}))
	landed := send(with(same))
	complete(t, s, landing(landed, n))
	send(with(func(s *submission.Submission) { s.Pool = solana.PublicKey{8, 8} }))

	got, err := s.Commitments(testPool).SentLeaves(ctx)
	ok(t, err)
	if diff := cmp.Diff([][][32]byte{leaves(3)[:1], leaves(2)}, got); diff != "" {
		t.Errorf("the leaves of what was sent, most urgent first (-want +got):\n%s", diff)
	}
	if _, err := s.Pool.Exec(ctx, "UPDATE requests SET public_inputs = decode(repeat('ff', 264), 'hex')"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Commitments(testPool).SentLeaves(ctx); err == nil {
		t.Errorf("unreadable inputs give %x, want an error", got)
	}
}
