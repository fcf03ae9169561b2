package signer

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// errWrongSignature is the error of an answer that is not a signature of the address.
var errWrongSignature = errors.New("the answer is not a signature by the fee payer's address, and was not used: name the key, and its version, that the address belongs to")

// Sign signs a serialised message. It tries twice, 2 s each. It returns only signatures that the
// address's public key verifies. When the service does not sign, the error is a
// txmgr.ErrSignerUnavailable; the signer is then not Available until a probe succeeds.
func (s *Signer) Sign(ctx context.Context, message []byte) (solana.Signature, error) {
	permit, ok := s.breaker.Try()
	if !ok {
		return solana.Signature{}, fmt.Errorf("%w: signer %s of fee payer %s is tried again in %s", txmgr.ErrSignerUnavailable, s.o.Name, s.o.Address, s.breaker.Next().Round(time.Second))
	}
	signature, err := s.try(ctx, message)
	switch {
	case err == nil:
		permit.Done(outbound.Good)
		return signature, nil
	case ctx.Err() != nil: // the caller stopped waiting, which says nothing about the service
		permit.Done(outbound.NoOutcome)
		return solana.Signature{}, fmt.Errorf("signer %s: %w", s.o.Name, err)
	}
	return solana.Signature{}, fmt.Errorf("%w: signer %s of fee payer %s: %w", txmgr.ErrSignerUnavailable, s.o.Name, s.o.Address, s.failed(permit, err))
}

// try calls the service until it signs, at most tries times.
func (s *Signer) try(ctx context.Context, message []byte) (signature solana.Signature, err error) {
	for range tries {
		if signature, err = s.signOnce(ctx, message); err == nil || ctx.Err() != nil {
			break
		}
	}
	return signature, err
}

func (s *Signer) signOnce(ctx context.Context, message []byte) (solana.Signature, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	began := s.o.Now()
	raw, err := s.o.Service.Sign(ctx, message)
	took := s.o.Now().Sub(began)
	switch {
	case err != nil:
		s.o.Called(s.o.Name, OutcomeFailed, took)
		return solana.Signature{}, err
	case len(raw) != ed25519.SignatureSize || !ed25519.Verify(s.o.Address[:], message, raw):
		s.o.Called(s.o.Name, OutcomeWrong, took)
		return solana.Signature{}, errWrongSignature
	}
	s.o.Called(s.o.Name, OutcomeSigned, took)
	return solana.SignatureFromBytes(raw), nil
}
