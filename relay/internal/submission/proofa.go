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

// pinMaxAge is how long a pin, or its absence, counts before the database is read again:
// another pod may have recorded another one, or an operator may have removed it.
const pinMaxAge = 30 * time.Second

// ProofAPolicy decides which encoding of a proof's A is accepted without a trial: a
// configured one or, in the automatic setting, either one until a finalized transaction has
// shown which one the program accepts. The other encoding is then tried on the chain before
// it is refused, and one that lands becomes the pin from then on.
type ProofAPolicy struct {
	store   Store
	keyHash [32]byte
	now     func() time.Time

	mu    sync.Mutex
	fixed groth16.Sign
	asked time.Time
	// configured reports that the operator set fixed, so that it never changes.
	configured bool
}

// NewProofAPolicy makes the policy for the setting "auto", "plain" or "negated".
func NewProofAPolicy(setting string, store Store, keyHash [32]byte, now func() time.Time) (*ProofAPolicy, error) {
	if store == nil || now == nil {
		return nil, errors.New("the sign policy needs a store and a clock")
	}
	p := &ProofAPolicy{store: store, keyHash: keyHash, now: now}
	if setting == "auto" {
		return p, nil
	}
	var err error
	p.fixed, err = groth16.ParseSign(setting)
	p.configured = true
	return p, err
}

// Configured reports whether the operator set the encoding, so that no transaction changes
// it.
func (p *ProofAPolicy) Configured() bool { return p.configured }

// Accepts reports whether a proof of that encoding is accepted without a trial.
func (p *ProofAPolicy) Accepts(ctx context.Context, s groth16.Sign) (bool, error) {
	fixed, known := p.cached()
	if !known {
		var err error
		if fixed, err = p.readPin(ctx); err != nil {
			return false, err
		}
	}
	return fixed == groth16.SignUnknown || fixed == s, nil
}

func (p *ProofAPolicy) cached() (fixed groth16.Sign, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fixed, p.configured || (!p.asked.IsZero() && p.now().Sub(p.asked) <= pinMaxAge)
}

// readPin reads the pin within each caller's own time: callers must not wait for one
// another on a hanging database.
func (p *ProofAPolicy) readPin(ctx context.Context) (fixed groth16.Sign, err error) {
	pinned, err := p.store.PinnedProofA(ctx, p.keyHash)
	if err != nil {
		return fixed, err
	}
	if pinned != "" {
		if fixed, err = groth16.ParseSign(pinned); err != nil {
			return fixed, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fixed, p.asked = fixed, p.now()
	return fixed, nil
}

// Learn returns the pins that final landings prove: a transaction of ours shows which
// encoding of A the program accepts. For each encoding the first transaction of the batch
// counts.
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
