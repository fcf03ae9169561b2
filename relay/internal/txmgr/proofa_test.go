package txmgr_test

import (
	"math/big"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fp"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// negateA gives a proof's bytes with −A in place of A.
func negateA(proof []byte) []byte {
	out := append([]byte(nil), proof...)
	y := new(big.Int).SetBytes(out[32:64])
	y.Sub(fp.Modulus(), y).FillBytes(out[32:64])
	return out
}

// TestACopiedProofWithItsSignTurnedPinsNothing: a stranger who copies a proof and negates A must
// not make the relay refuse honest clients.
func TestACopiedProofWithItsSignTurnedPinsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	w.run(r)
	req, to := w.withdrawal(sol)
	copied := req
	copied.Proof = negateA(req.Proof)
	turned := w.done(w.submit(r, copied).ID)
	if turned.State != submission.Failed || turned.Failure.Code != refusal.ProofInvalid || turned.ProofAEncoding != "negated" {
		t.Fatalf("the copy ended as %+v, failure %v", turned, turned.Failure)
	}
	if sign, err := w.store.PinnedProofA(t.Context(), w.key.Hash()); err != nil || sign != "" || r.of("signed") != 0 {
		t.Fatalf("the copy pinned %q after %d signatures (%v)", sign, r.of("signed"), err)
	}
	honest := w.done(w.submit(r, req).ID)
	if honest.State != submission.Completed || w.balance(to) != sol-8_000_000 {
		t.Fatalf("the honest proof ended as %+v, failure %v", honest, honest.Failure)
	}
	w.eventually("it is finalized", func() bool { return w.get(honest.ID).Finalized })
	later := w.relay(nil) // one that asks the database for the pin
	again, _ := w.withdrawal(sol)
	again.Proof = negateA(again.Proof)
	_, err := later.Submit(t.Context(), again)
	if refused := wantCode(t, err, refusal.ProofInvalid); refused.Message == turned.Failure.Message {
		t.Error("the copy is not refused because of the pinned sign")
	}
}
