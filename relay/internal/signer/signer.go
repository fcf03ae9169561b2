// Package signer signs transactions with fee payers' keys that stay in a key service: Vault
// Transit, AWS KMS or Google Cloud KMS. It checks each signature before anybody else sees it, and it
// knows which services answer.
package signer

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
)

// Service is one ed25519 key of a key service. Its methods make one call each, and do not retry. They
// may be called concurrently. Their errors hold no credentials.
type Service interface {
	// PublicKey reads the public half of the key.
	PublicKey(ctx context.Context) (ed25519.PublicKey, error)
	// Sign signs the message itself, not its hash, and returns the 64 bytes of RFC 8032.
	Sign(ctx context.Context, message []byte) ([]byte, error)
}

const (
	// tryTimeout bounds one call. A signature takes a few milliseconds; a blockhash lives for about
	// 30 s, and the transaction still has to land within its life.
	tryTimeout = 2 * time.Second
	// tries is the number of calls for one signature.
	tries = 2
	// maxProbeDelay is the longest time between two probes of a service that does not sign.
	maxProbeDelay = 15 * time.Second
)

// The outcomes of a call, as a metric's label.
const (
	OutcomeSigned = "signed"
	OutcomeFailed = "failed"
	// OutcomeWrong: the service answered with something that is not the address's signature.
	OutcomeWrong = "wrong"
)

// Options configure a Signer. All fields are required, except Called.
type Options struct {
	// Name is what people call the signer; logs, metrics and /health contain it.
	Name string
	// Address is the fee payer's address, which the signatures must belong to.
	Address solana.PublicKey
	Service Service
	Log     *slog.Logger
	Now     func() time.Time
	// Rand gives numbers from 0 to below 1.
	Rand func() float64
	// Called is called after each call for a signature. It must not block.
	Called func(name, outcome string, took time.Duration)
}

// Signer signs for one fee payer. It is a txmgr.Payer.
type Signer struct {
	o       Options
	breaker *outbound.Breaker
	// fault is the error of the last call that failed.
	fault atomic.Value
}

// New makes a Signer. It calls nothing; see Check.
func New(o Options) (*Signer, error) {
	if o.Name == "" || o.Address.IsZero() || o.Service == nil || o.Log == nil || o.Now == nil || o.Rand == nil {
		return nil, errors.New("a signer needs a name, an address, a service, a logger, a clock and a source of random numbers")
	}
	if o.Called == nil {
		o.Called = func(string, string, time.Duration) {}
	}
	s := &Signer{o: o}
	var err error
	// One failure opens the breaker, because Sign has then tried twice: other fee payers go on.
	s.breaker, err = outbound.NewBreaker(outbound.BreakerOptions{Now: o.Now, Rand: o.Rand, Consecutive: 1, MaxDelay: maxProbeDelay, Changed: s.logChange})
	return s, err
}

func (s *Signer) logChange(from, to outbound.State) {
	switch {
	case to == outbound.Closed:
		s.o.Log.Info("signer signs again; its fee payer is used", "signer", s.o.Name, "payer", s.o.Address)
	case from == outbound.Closed:
		s.o.Log.Warn("signer does not sign; its fee payer is not used", "signer", s.o.Name, "payer", s.o.Address, "error", s.fault.Load())
	}
}

// failed records a call that failed, and returns its error.
func (s *Signer) failed(permit outbound.Permit, err error) error {
	s.fault.Store(err.Error())
	permit.Done(outbound.Bad)
	return err
}

// Name is what people call the signer.
func (s *Signer) Name() string { return s.o.Name }

// PublicKey is the fee payer's address.
func (s *Signer) PublicKey() solana.PublicKey { return s.o.Address }

// Available reports whether the service signed when it was last asked.
func (s *Signer) Available() bool { return s.breaker.State() == outbound.Closed }

// ErrWrongKey is the error of a service whose key is not that of the configured address.
var ErrWrongKey = errors.New("the key service has the key of another address")

// Check compares the service's public key with the address. It returns ErrWrongKey when they differ.
// When the key cannot be read, the signer is not available until Run has seen a signature, and Check
// returns the reason.
func (s *Signer) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	permit := s.breaker.Force()
	public, err := s.o.Service.PublicKey(ctx)
	switch {
	case err != nil:
		return s.failed(permit, fmt.Errorf("signer %s: read the public key: %w", s.o.Name, err))
	case len(public) != ed25519.PublicKeySize:
		return s.failed(permit, fmt.Errorf("signer %s: the public key has %d bytes: expected the %d of an ed25519 key", s.o.Name, len(public), ed25519.PublicKeySize))
	case solana.PublicKeyFromBytes(public) != s.o.Address:
		return s.failed(permit, fmt.Errorf("signer %s: %w: expected %s, received %s: correct the address, or name the key (and its version) of that address", s.o.Name, ErrWrongKey, s.o.Address, solana.PublicKeyFromBytes(public)))
	}
	permit.Done(outbound.Good)
	return nil
}
