package admission

import (
	"context"
	"crypto/rand"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/refusal"
)

// These bytes of a claim tell the fake verifier its verdict.
const (
	isPlain byte = iota
	isNegated
	isForged
	causesPanic
)

func claimOf(kind byte) groth16.Claim { return groth16.Claim{Publics: [][32]byte{{kind}}} }

// fakeVerifier records its batches. Each takes a second.
type fakeVerifier struct {
	mu       sync.Mutex
	sizes    []int
	expected []groth16.ProofAEncoding
}

func (f *fakeVerifier) verify(claims []groth16.Claim, expected groth16.ProofAEncoding) []groth16.Verdict {
	f.mu.Lock()
	f.sizes, f.expected = append(f.sizes, len(claims)), append(f.expected, expected)
	f.mu.Unlock()
	time.Sleep(time.Second)
	verdicts := make([]groth16.Verdict, len(claims))
	for i, c := range claims {
		switch c.Publics[0][0] {
		case isPlain:
			verdicts[i].Encoding = groth16.Plain
		case isNegated:
			verdicts[i].Encoding = groth16.Negated
		case isForged:
			verdicts[i].Err = groth16.ErrInvalid
		default:
			panic("a fault of the verifier")
		}
	}
	return verdicts
}

// send starts requests in the order of their claims.
func send(t *testing.T, q *proofQueue, kinds ...byte) {
	for _, kind := range kinds {
		go func() {
			v, err := q.verify(t.Context(), claimOf(kind))
			want := map[byte]groth16.ProofAEncoding{isPlain: groth16.Plain, isNegated: groth16.Negated}[kind]
			if err != nil || v.Encoding != want || (v.Err != nil) != (kind == isForged) {
				t.Errorf("claim of kind %d: verdict %v, error %v", kind, v, err)
			}
		}()
		synctest.Wait()
	}
}

// finish waits until all batches are verified.
func finish() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

func repeat(kind byte, n int) []byte { return slices.Repeat([]byte{kind}, n) }

func TestSizesOfBatches(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		workers int
		kinds   []byte
		want    []int
	}{
		"a lone request":                     {workers: 2, kinds: repeat(isPlain, 1), want: []int{1}},
		"as many requests as cores":          {workers: 2, kinds: repeat(isPlain, 2), want: []int{1, 1}},
		"few wait for two cores":             {workers: 2, kinds: repeat(isPlain, 2+8), want: []int{1, 1, 8}},
		"two cores share those that wait":    {workers: 2, kinds: repeat(isPlain, 2+20), want: []int{1, 1, 2, 8, 10}},
		"one core takes all":                 {workers: 1, kinds: repeat(isPlain, 1+20), want: []int{1, 20}},
		"more wait than a batch holds":       {workers: 1, kinds: repeat(isPlain, 1+150), want: []int{1, 64, 64, 22}},
		"forged proofs make batches smaller": {workers: 1, kinds: repeat(isForged, 1+60), want: []int{1, 32, 16, 8, 4}},
		"down to single checks":              {workers: 1, kinds: repeat(isForged, 1+67), want: []int{1, 32, 16, 8, 4, 2, 1, 1, 1, 1, 1}},
		"one forged proof of a batch is enough": {
			workers: 1, kinds: slices.Concat(repeat(isPlain, 1+63), repeat(isForged, 1), repeat(isPlain, 40)), want: []int{1, 64, 32, 8},
		},
		"mixed encodings make batches smaller": {
			workers: 1, kinds: slices.Concat(repeat(isPlain, 1+63), repeat(isNegated, 1), repeat(isPlain, 40)), want: []int{1, 64, 32, 8},
		},
		"valid proofs make batches larger again": {
			workers: 1, kinds: slices.Concat(repeat(isForged, 1+62), repeat(isPlain, 30)), want: []int{1, 32, 16, 8, 4, 2, 1, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeVerifier{}
				q := newProofQueue(tt.workers, f.verify)
				send(t, q, tt.kinds...)
				finish()
				if tt.workers > 1 {
					slices.Sort(f.sizes) // two workers begin at the same time
				}
				if !slices.Equal(f.sizes, tt.want) {
					t.Errorf("batches of %v, want %v", f.sizes, tt.want)
				}
				for range tt.workers { // each worker was given back
					send(t, q, isPlain)
				}
				if n := len(f.sizes) - len(tt.want); n != tt.workers {
					t.Errorf("%d of %d requests run at once, want all", n, tt.workers)
				}
				finish()
			})
		})
	}
}

func TestExpectedEncodingIsTheCommonOne(t *testing.T) {
	t.Parallel()
	const plain, negated = groth16.Plain, groth16.Negated
	for name, tt := range map[string]struct {
		kinds []byte
		want  []groth16.ProofAEncoding
	}{
		"plain at first":                      {[]byte{isPlain, isPlain}, []groth16.ProofAEncoding{plain, plain}},
		"negated once a proof was":            {[]byte{isNegated, isNegated}, []groth16.ProofAEncoding{plain, negated}},
		"one of another kind changes nothing": {[]byte{isPlain, isPlain, isNegated, isPlain}, []groth16.ProofAEncoding{plain, plain, plain, plain}},
		"a forged proof changes nothing":      {[]byte{isNegated, isForged, isNegated}, []groth16.ProofAEncoding{plain, negated, negated}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeVerifier{}
				q := newProofQueue(1, f.verify)
				for _, kind := range tt.kinds {
					send(t, q, kind)
					finish()
				}
				if !slices.Equal(f.expected, tt.want) {
					t.Errorf("expected encodings %v, want %v", f.expected, tt.want)
				}
			})
		})
	}
}

func TestARequestThatEndsIsNotVerified(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(context.Context) (context.Context, context.CancelFunc)
		want func(error) bool
	}{
		"the client disconnects": {
			end: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second/2, cancel)
				return ctx, cancel
			},
			want: func(err error) bool { return errors.Is(err, context.Canceled) },
		},
		"its time is over": {
			end: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second/2)
			},
			want: func(err error) bool {
				r, ok := refusal.As(err)
				return ok && r.Code == refusal.RateLimited
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeVerifier{}
				q := newProofQueue(1, f.verify)
				send(t, q, repeat(isPlain, 2)...)
				ctx, cancel := tt.end(t.Context())
				defer cancel()
				if _, err := q.verify(ctx, claimOf(isPlain)); !tt.want(err) {
					t.Errorf("error is %v", err)
				}
				send(t, q, isPlain)
				finish()
				if want := []int{1, 2}; !slices.Equal(f.sizes, want) {
					t.Errorf("batches of %v, want %v", f.sizes, want)
				}
			})
		})
	}
}

func TestAPanicFailsOnlyItsOwnRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newProofQueue(1, new(fakeVerifier).verify)
		send(t, q, isPlain, isPlain, isForged)
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = q.verify(t.Context(), claimOf(causesPanic))
		}()
		synctest.Wait()
		send(t, q, isNegated, isPlain)
		if <-panicked == nil {
			t.Error("the request that causes the panic does not panic")
		}
		send(t, q, isPlain) // the worker goes on
		finish()
	})
}

// trapdoorKey makes a key for so many public inputs, and what proves anything under it.
func trapdoorKey(t *testing.T, seed string, inputs int) (*trapdoor.Key, *groth16.Key) {
	t.Helper()
	secret := trapdoor.New(seed, inputs)
	text, err := secret.VerifyingKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := groth16.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return secret, key
}

// TestRequestsThatEndWhileProofsAreVerified runs the real verifier, for the race detector.
func TestRequestsThatEndWhileProofsAreVerified(t *testing.T) {
	t.Parallel()
	secret, key := trapdoorKey(t, "proof queue", 1)
	q := newProofQueue(runtime.GOMAXPROCS(0), func(claims []groth16.Claim, expected groth16.ProofAEncoding) []groth16.Verdict {
		return key.VerifyBatch(claims, expected, rand.Reader)
	})
	var wg sync.WaitGroup
	for i := range 120 {
		publics := [][32]byte{{31: byte(i)}}
		encoded, err := secret.Prove(publics, uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		proof, err := groth16.ParseProof(encoded)
		if err != nil {
			t.Fatal(err)
		}
		forged, leaves := i%40 == 7, i%3 == 0
		if forged {
			publics[0][31]++
		}
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if leaves {
				time.AfterFunc(time.Duration(i)*50*time.Microsecond, cancel)
			}
			v, err := q.verify(ctx, groth16.Claim{Proof: proof, Publics: publics})
			switch {
			case leaves && errors.Is(err, context.Canceled):
			case err != nil || (v.Err != nil) != forged || (v.Encoding == groth16.Plain) == forged:
				t.Errorf("request %d: verdict %v, error %v", i, v, err)
			}
		})
	}
	wg.Wait()
}
