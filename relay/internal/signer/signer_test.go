package signer

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// keyService is a Service whose faults a test sets.
type keyService struct {
	private ed25519.PrivateKey

	mu sync.Mutex
	// fault is what Sign does instead of signing, if it is set.
	fault func(ctx context.Context, signature []byte) ([]byte, error)
	calls int
}

func (k *keyService) setFault(fault func(context.Context, []byte) ([]byte, error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fault = fault
}

func (k *keyService) asked() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.calls
}

// call counts a call, and returns the fault.
func (k *keyService) call() func(context.Context, []byte) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	return k.fault
}

func newKeyService(seed byte) *keyService {
	return &keyService{private: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))}
}

func (k *keyService) address() solana.PublicKey {
	return solana.PublicKeyFromBytes(k.private.Public().(ed25519.PublicKey))
}

func (k *keyService) PublicKey(ctx context.Context) (ed25519.PublicKey, error) {
	public := k.private.Public().(ed25519.PublicKey)
	if fault := k.call(); fault != nil {
		if _, err := fault(ctx, nil); err != nil {
			return nil, err
		}
	}
	return public, nil
}

func (k *keyService) Sign(ctx context.Context, message []byte) ([]byte, error) {
	signature := ed25519.Sign(k.private, message)
	if fault := k.call(); fault != nil {
		return fault(ctx, signature)
	}
	return signature, nil
}

var errAway = errors.New("connection refused")

func away(context.Context, []byte) ([]byte, error) { return nil, errAway }

func hangs(ctx context.Context, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// flipped returns the signature with one bit changed, as a service would that signs with another key
// or another message.
func flipped(_ context.Context, signature []byte) ([]byte, error) {
	wrong := bytes.Clone(signature)
	wrong[5] ^= 1
	return wrong, nil
}

// lockedBuffer is a buffer for concurrent use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type world struct {
	*Signer
	service *keyService
	log     lockedBuffer
	// outcomes are those of all calls for a signature.
	outcomes []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{service: newKeyService(1)}
	s, err := New(Options{
		Name: "vault-1", Address: w.service.address(), Service: w.service, Log: slog.New(slog.NewTextHandler(&w.log, nil)), Now: time.Now,
		Rand: func() float64 { return 0 }, Called: func(_, outcome string, _ time.Duration) { w.outcomes = append(w.outcomes, outcome) },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Signer = s
	return w
}

func TestSign(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault     func(context.Context, []byte) ([]byte, error)
		outcomes  []string
		available bool
		text      string // of the error; empty for none
		took      time.Duration
	}{
		"a service that signs":                     {nil, []string{OutcomeSigned}, true, "", 0},
		"a service that is away is asked twice":    {away, []string{OutcomeFailed, OutcomeFailed}, false, "connection refused", 0},
		"a service that hangs is left after 2 s":   {hangs, []string{OutcomeFailed, OutcomeFailed}, false, "deadline exceeded", 2 * tryTimeout},
		"a wrong signature is used by nobody":      {flipped, []string{OutcomeWrong, OutcomeWrong}, false, errWrongSignature.Error(), 0},
		"half a signature is used by nobody":       {func(_ context.Context, s []byte) ([]byte, error) { return s[:32], nil }, []string{OutcomeWrong, OutcomeWrong}, false, errWrongSignature.Error(), 0},
		"an answer without a signature is refused": {func(context.Context, []byte) ([]byte, error) { return nil, nil }, []string{OutcomeWrong, OutcomeWrong}, false, errWrongSignature.Error(), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, message := newWorld(t), []byte("a transaction's message")
				w.service.setFault(test.fault)
				began := time.Now()
				signature, err := w.Sign(t.Context(), message)
				switch {
				case test.text == "":
					if err != nil || !signature.Verify(w.PublicKey(), message) {
						t.Errorf("got error %v, and a signature that verifies: %t", err, signature.Verify(w.PublicKey(), message))
					}
				case !errors.Is(err, txmgr.ErrSignerUnavailable) || !strings.Contains(err.Error(), test.text) || !signature.IsZero():
					t.Errorf("got signature %s and error %v, want none and ErrSignerUnavailable with %q", signature, err, test.text)
				}
				if took := time.Since(began); took != test.took {
					t.Errorf("it took %s, want %s", took, test.took)
				}
				if diff := cmp.Diff(test.outcomes, w.outcomes); diff != "" {
					t.Errorf("outcomes (-want +got):\n%s", diff)
				}
				if w.Available() != test.available {
					t.Errorf("available is %t, want %t", w.Available(), test.available)
				}
			})
		})
	}
}

func TestAnUnavailableSignerIsNotAskedByCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.service.setFault(away)
		for range 5 {
			if _, err := w.Sign(t.Context(), []byte("m")); !errors.Is(err, txmgr.ErrSignerUnavailable) {
				t.Fatalf("got %v, want ErrSignerUnavailable", err)
			}
		}
		if w.service.asked() != tries {
			t.Errorf("the service was asked %d times, want %d", w.service.asked(), tries)
		}
		if n := strings.Count(w.log.String(), "signer does not sign"); n != 1 {
			t.Errorf("the outage was logged %d times, want once:\n%s", n, &w.log)
		}
	})
}

func TestRunFindsOutThatTheServiceSignsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go w.Run(ctx)
		w.service.setFault(away)
		if _, err := w.Sign(ctx, []byte("m")); err == nil {
			t.Fatal("a service that is away signed")
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if asked := w.service.asked(); asked < 40 || asked > 120 {
			t.Errorf("the service was asked %d times in 10 minutes, want about two times each %s", asked, maxProbeDelay)
		}
		w.service.setFault(flipped)
		time.Sleep(2 * maxProbeDelay)
		synctest.Wait()
		if w.Available() {
			t.Error("a probe with a wrong signature made the signer available")
		}
		w.service.setFault(nil)
		time.Sleep(2 * maxProbeDelay)
		synctest.Wait()
		if !w.Available() || !strings.Contains(w.log.String(), "signer signs again") {
			t.Errorf("available is %t; the log:\n%s", w.Available(), &w.log)
		}
	})
}

func TestTheEndOfACallerIsNoFaultOfTheService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.service.setFault(hangs)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Sign(ctx, []byte("m")); err == nil || errors.Is(err, txmgr.ErrSignerUnavailable) {
		t.Errorf("got %v, want the caller's end", err)
	}
	if !w.Available() {
		t.Error("the end of a caller made the signer unavailable")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.Check(t.Context()); err != nil || !w.Available() {
		t.Errorf("got %v and available %t, want the right key", err, w.Available())
	}
	w.service.setFault(away)
	if err := w.Check(t.Context()); !errors.Is(err, errAway) || errors.Is(err, ErrWrongKey) || w.Available() {
		t.Errorf("got %v and available %t, want an unavailable signer", err, w.Available())
	}
	w = newWorld(t)
	w.service.private = newKeyService(2).private
	if err := w.Check(t.Context()); !errors.Is(err, ErrWrongKey) || w.Available() {
		t.Errorf("got %v and available %t, want ErrWrongKey", err, w.Available())
	}
}
