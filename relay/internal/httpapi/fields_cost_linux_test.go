package httpapi_test

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/admission"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestOverlongFieldsAreRefusedCheaply: the time to decode base58 grows with the square
// of the length, and reaches 40 ms for the longest text that fits a body. Each request
// is well-formed except for one overlong text, and goes to the real decoders. The test
// takes the least processor time of ten requests, which other load on the machine
// hardly increases.
func TestOverlongFieldsAreRefusedCheaply(t *testing.T) {
	t.Parallel()
	const most = 10 * time.Millisecond  // a refusal takes 0.3 ms, and 1.5 ms with the race detector
	long := strings.Repeat("z", 12_000) // not '1', which is cheap to decode
	in := shieldpool.PublicInputs{PublicAmount: -1_000_000_000, MintAddress: shieldpool.Development().Mints[0].Field, Nullifiers: [2][32]byte{{31: 1}, {31: 2}}}
	inputs := with("public_inputs", b64(in.Bytes()))
	withdrawal := func(text string) string { return transactBody(inputs, with("recipient", text)) }
	swap := func(name string) string { return swapBody(inputs, with(name, long)) }
	registration := func(name string) string {
		return registerBody(with("user_pubkey", outputMint.String()), with("viewing_key", hex32), with(name, long))
	}
	tests := map[string]struct{ path, body string }{
		"the recipient of a transaction":   {"/transact", withdrawal(long)},
		"the recipient of a withdrawal":    {"/withdraw", withdrawal(long)},
		"the recipient of a swap":          {"/transact_swap", swap("recipient")},
		"the mint of a swap":               {"/transact_swap", swap("output_mint")},
		"the token account of a swap":      {"/transact_swap", swap("recipient_ata")},
		"the wallet of a viewing key":      {"/viewing-key/register", registration("user_pubkey")},
		"the signature over a viewing key": {"/viewing-key/register", registration("signature")},
	}
	api := newRealAPI(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			least := time.Hour
			for range 10 {
				rec, r := httptest.NewRecorder(), post(test.path, test.body)
				began := processorTime(t)
				api.ServeHTTP(rec, r)
				least = min(least, processorTime(t)-began)
				if rec.Code != http.StatusBadRequest && rec.Code != http.StatusUnauthorized {
					t.Fatalf("the answer is %d %s, want a refusal", rec.Code, rec.Body)
				}
			}
			if least > most {
				t.Errorf("a refusal takes %s of processor time, want at most %s", least, most)
			}
		})
	}
}

// processorTime is how much processor time this thread has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// newRealAPI makes an API with the real admission and registration. The parts behind
// their checks are missing, because no refused request reaches them.
func newRealAPI(t *testing.T) http.Handler {
	t.Helper()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	store := struct{ submission.Store }{}
	proofAPolicy, err := submission.NewProofAPolicy("plain", store, [32]byte{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	admission, err := admission.New(admission.Options{
		Store: store, Pool: pool, State: struct{ submission.PoolState }{}, Payers: noPayers{}, Spending: struct{ txmgr.Spending }{},
		Key: new(groth16.Key), ProofA: proofAPolicy, Observer: struct{ submission.Observer }{}, Submissions: new(submission.Handler), Ready: func() error { return nil }, Now: time.Now, NewID: uuid.New, CallTimeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	officer, _, err := viewingkey.GenerateComplianceKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := viewingkey.New(viewingkey.Options{
		Store: struct{ viewingkey.Store }{}, Messages: []string{"sign in"}, CompliancePublicKey: officer, Random: rand.Reader, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	d := &domains{submit: admission.Submit}
	return newFixture(t, d, enableSwaps, func(o *httpapi.Options) { o.ViewingKeys = keys }).handler
}

// noPayers is an empty set of fee payers.
type noPayers struct{ txmgr.FeePayers }

func (noPayers) Keys() []solana.PublicKey { return nil }
