package sweep_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/sweep"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// storeSignedAttempt stores a submission with an attempt that the payer has signed, and
// returns its lease.
func (w *world) storeSignedAttempt(n byte, payer solana.PublicKey) txmgr.Lease {
	w.Helper()
	ctx, worker := w.Context(), uuid.New()
	must[bool](w.T)(w.store.Heartbeat(ctx, txmgr.Worker{ID: worker}, time.Minute))
	call := &shieldpool.Call{
		Proof: make([]byte, shieldpool.ProofLength), Inputs: &shieldpool.PublicInputs{PublicAmount: -9, Nullifiers: [2][32]byte{{31: n}}},
		Destination: shieldpool.Destination{Recipient: solana.PublicKey{1}},
	}
	sub := must[*submission.Submission](w.T)(w.store.Accept(ctx, &submission.Submission{ID: uuid.New(), Kind: call.Kind(), Call: call, ProofAEncoding: "plain"}, nil, &worker))
	lease := sub.Lease()
	err := w.store.RecordAttempt(ctx, lease, txmgr.Attempt{Signature: solana.Signature{n}, Raw: []byte{n}, FeePayer: payer, LastValidBlockHeight: 9, Purpose: txmgr.PurposeTransact, Cost: 5, Fee: 5})
	if err != nil {
		w.Fatal(err)
	}
	return lease
}

func TestSweepWaitsForOpenAttempts(t *testing.T) {
	t.Parallel()
	landing := func(l txmgr.Lease) []submission.Landing {
		return []submission.Landing{{Lease: l, Outcome: submission.Outcome{Signature: solana.Signature{1}, Slot: 7}}}
	}
	tests := map[string]func(w *world, l txmgr.Lease, checkWaitsFor func(string)){
		"a transaction that lands": func(w *world, l txmgr.Lease, checkWaitsFor func(string)) {
			checkWaitsFor("1 attempts of these payers that may still land and 0 that are not final")
			must[[]txmgr.Lease](w.T)(w.store.Complete(w.Context(), landing(l)))
			checkWaitsFor("0 attempts of these payers that may still land and 1 that are not final")
			must[[]txmgr.Lease](w.T)(w.store.Finalize(w.Context(), landing(l), nil))
		},
		"a transaction that is marked dead": func(w *world, l txmgr.Lease, checkWaitsFor func(string)) {
			checkWaitsFor("1 attempts of these payers that may still land")
			if err := w.store.MarkAttemptsDead(w.Context(), l, []txmgr.DeadAttempt{{Signature: solana.Signature{1}}}); err != nil {
				w.Fatal(err)
			}
		},
	}
	for name, resolve := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old, to := w.key("old", 2*sol), w.key("new", sol)
			lease := w.storeSignedAttempt(1, old.PublicKey())
			w.storeSignedAttempt(2, to.PublicKey()) // an attempt of a payer that is not drained delays nothing
			s := w.sweeper(w.endpoints())
			// A run that times out before it knows what it waits for gets more time.
			runBriefly := func(run func(context.Context) (sweep.Result, error)) (err error) {
				for timeout := 300 * time.Millisecond; ; timeout *= 2 {
					ctx, cancel := context.WithTimeout(t.Context(), timeout)
					_, err = run(ctx)
					cancel()
					if err == nil || !strings.Contains(err.Error(), "waiting for its first step") {
						return err
					}
				}
			}
			resolve(w, lease, func(why string) {
				t.Helper()
				drainErr := runBriefly(func(ctx context.Context) (sweep.Result, error) { return s.Drain(ctx, addresses(old)) })
				allErr := runBriefly(func(ctx context.Context) (sweep.Result, error) { return s.All(ctx, signers(old), to.PublicKey()) })
				for what, err := range map[string]error{"drain": drainErr, "all": allErr} {
					var unfinished *sweep.Unfinished
					if !errors.As(err, &unfinished) || !strings.Contains(err.Error(), why) {
						t.Errorf("%s returns %v, want Unfinished with %q", what, err, why)
					}
				}
				w.checkBalances(map[string]uint64{"old": 2 * sol, "new": sol})
			})
			if _, err := s.Drain(w.context(), addresses(old)); err != nil {
				t.Error(err)
			}
			if _, err := s.All(w.context(), signers(old), to.PublicKey()); err != nil {
				t.Error(err)
			}
			w.checkBalances(map[string]uint64{"old": 0, "new": 3*sol - fee})
		})
	}
}

func TestDrainEndsOnceAttemptIsDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.key("old", sol)
	lease := w.storeSignedAttempt(1, old.PublicKey())
	done := make(chan error, 1)
	go func() {
		_, err := w.sweeper(w.endpoints()).Drain(w.context(), addresses(old))
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("Drain returned %v while a transaction could still land", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := w.store.MarkAttemptsDead(t.Context(), lease, []txmgr.DeadAttempt{{Signature: solana.Signature{1}}}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
