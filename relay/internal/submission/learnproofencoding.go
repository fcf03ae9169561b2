package submission

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// pinMaxAge is how long the answer of the database, a pin or none, is used before the database is
// read again: another pod may have replaced the pin, or an operator may have removed it.
const pinMaxAge = 30 * time.Second

// ProofAPolicy decides which encoding of a proof's A is accepted without a simulation. If an
// encoding is configured, only that one is accepted. In the automatic setting both encodings are
// accepted at first. A finalized transaction then shows which encoding the program accepts, and
// this encoding is pinned. From then on, a simulation decides whether a proof with the other
// encoding is accepted. If such a proof lands, the other encoding is pinned instead.
type ProofAPolicy struct {
	store   Store
	keyHash [32]byte
	now     func() time.Time

	mu sync.Mutex
	// required is the configured or pinned encoding, if any. readAt is when the pin was read.
	required groth16.ProofAEncoding
	readAt   time.Time
	// configured is true if the operator set the encoding, so that required never changes.
	configured bool
}

// NewProofAPolicy makes the policy for the setting "auto", "plain" or "negated".
func NewProofAPolicy(setting string, store Store, keyHash [32]byte, now func() time.Time) (*ProofAPolicy, error) {
	if store == nil || now == nil {
		return nil, errors.New("the policy for proof A needs a store and a clock")
	}
	p := &ProofAPolicy{store: store, keyHash: keyHash, now: now}
	if setting == "auto" {
		return p, nil
	}
	var err error
	p.required, err = groth16.ParseProofAEncoding(setting)
	p.configured = true
	return p, err
}

// Configured reports whether the operator set the encoding, so that no transaction changes
// it.
func (p *ProofAPolicy) Configured() bool { return p.configured }

// Accepts reports whether a proof with encoding s is accepted without a simulation.
func (p *ProofAPolicy) Accepts(ctx context.Context, s groth16.ProofAEncoding) (bool, error) {
	required, known := p.cached()
	if !known {
		var err error
		if required, err = p.readPin(ctx); err != nil {
			return false, err
		}
	}
	return required == groth16.EncodingUnknown || required == s, nil
}

func (p *ProofAPolicy) cached() (required groth16.ProofAEncoding, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.required, p.configured || (!p.readAt.IsZero() && p.now().Sub(p.readAt) <= pinMaxAge)
}

// readPin reads the pin for each caller separately: with a hanging database, callers must not
// wait for each other.
func (p *ProofAPolicy) readPin(ctx context.Context) (required groth16.ProofAEncoding, err error) {
	pinned, err := p.store.PinnedProofA(ctx, p.keyHash)
	if err != nil {
		return required, err
	}
	if pinned != "" {
		if required, err = groth16.ParseProofAEncoding(pinned); err != nil {
			return required, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.required, p.readAt = required, p.now()
	return required, nil
}

// Learn returns the pins that follow from final landings: a landed attempt shows which encoding of
// A the program accepts. The pin of an encoding names the first such attempt of the batch.
func (p *ProofAPolicy) Learn(landed []txmgr.Landed) (pins []ProofAPin) {
	for _, l := range landed {
		encoding := FromJob(l.Job).ProofAEncoding
		seen := slices.ContainsFunc(pins, func(pin ProofAPin) bool { return pin.Encoding == encoding })
		if l.Ours && l.Purpose == txmgr.PurposeTransact && encoding != "" && !seen {
			pins = append(pins, ProofAPin{KeyHash: p.keyHash, Encoding: encoding, Signature: l.Signature})
		}
	}
	return pins
}
