package txmgr_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// serviceKey is a payer whose key is in a key service.
type serviceKey struct {
	*feepayer.Key
	// away: the service is known not to sign. fails: it does not sign, and nobody knows.
	away, fails atomic.Bool
}

func (k *serviceKey) Available() bool { return !k.away.Load() }

func (k *serviceKey) Sign(ctx context.Context, message []byte) (solana.Signature, error) {
	if k.fails.Load() {
		k.away.Store(true)
	}
	if k.away.Load() {
		return solana.Signature{}, txmgr.ErrSignerUnavailable
	}
	return k.Key.Sign(ctx, message)
}

// A signer that is away holds accepted work and loses none. New work is accepted meanwhile.
func TestSubmissionsWaitForTheSigner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := &serviceKey{Key: w.payer}
	r := w.assemble(parts{payer: key, timing: probing(), concurrency: 2})
	w.run(r)
	key.fails.Store(true)
	var ids []uuid.UUID
	for range 6 {
		ids = append(ids, w.submit(r, w.transfer()).ID)
	}
	w.eventually("the queue is paused", func() bool { return r.PausedBy() == txmgr.HoldSigner })
	w.eventually("all submissions are held, and none is due", func() bool {
		b, err := w.store.Backlog(t.Context())
		must(t, err)
		return b.Due == 0 && b.Held[txmgr.HoldSigner] == int64(len(ids))
	})
	if n := r.count("signed"); n != 0 {
		t.Errorf("%d transactions were signed without a signer", n)
	}
	key.fails.Store(false)
	key.away.Store(false)
	for _, id := range ids {
		if s := w.done(id); s.State != submission.Completed {
			t.Errorf("the submission ended as %+v, failure %v; want it completed", s, s.Failure)
		}
	}
	if n := r.count("signed"); n != len(ids) {
		t.Errorf("%d transactions were signed for %d submissions", n, len(ids))
	}
	w.eventually("the queue is not held", func() bool { return r.PausedBy() == "" })
}

// While one payer's signer is away, another payer pays.
func TestAnotherPayerSignsMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key, other := &serviceKey{Key: w.payer}, w.newKey()
	must(t, w.chain.Fund(other.PublicKey(), sol))
	r := w.assemble(parts{payer: key, payers: []txmgr.Payer{other}, timing: probing()})
	w.run(r)
	key.fails.Store(true)
	for range 4 {
		s := w.done(w.submit(r, w.transfer()).ID)
		if s.State != submission.Completed {
			t.Fatalf("the submission ended as %+v, failure %v; want it completed", s, s.Failure)
		}
	}
	rows, err := w.store.Pool.Query(t.Context(), `SELECT fee_payer FROM attempts`)
	must(t, err)
	payers, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	must(t, err)
	if len(payers) != 4 || slices.ContainsFunc(payers, func(p []byte) bool { return solana.PublicKeyFromBytes(p) != other.PublicKey() }) {
		t.Errorf("the attempts were paid by %x, want 4 of %x", payers, other.PublicKey())
	}
}
