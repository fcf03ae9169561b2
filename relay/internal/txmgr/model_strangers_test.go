package txmgr_test

import (
	"context"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Hostile clients of the model. They know only what anybody could know: the calls and the
// Idempotency-Keys that others sent.

// modelSender is the sender of a request, with its Idempotency-Key, if any. The client is zero when
// the relay requires no API keys.
type modelSender struct {
	client [32]byte
	key    string
}

// senderKey is the key, in a request's context, of the request's sender.
type senderKey struct{}

// modelMaxFailures is how many paid failures on the chain end a submission.
const modelMaxFailures = 8

// strangerOperations returns the actions of hostile clients.
func (m *model) strangerOperations() []modelOperation {
	landed := func(s *modelSubmission) bool { return s.last.State == submission.Completed }
	return []modelOperation{
		{"a stranger copies a landed call", 2, func(p *modelProcess) { m.copy(p, m.pick(landed)) }},
		{"a stranger copies a request", 1, func(p *modelProcess) { m.copy(p, m.pick(func(*modelSubmission) bool { return true })) }},
		{"a stranger's copy with negated A comes first", 1, func(p *modelProcess) {
			c := m.call(0, 2)
			m.trySubmit(p, withNegatedA(c))
			m.trySubmit(p, c)
		}},
		{"a stranger uses another client's key", 2, func(p *modelProcess) {
			first := m.pick(func(s *modelSubmission) bool { return s.from.key != "" })
			if first == nil {
				return
			}
			stranger := modelSender{m.client(), first.from.key}
			for range 2 {
				_, _ = m.post(p, m.call(0, 1), stranger)
			}
			_, _ = m.post(p, first.call, first.from)
		}},
		{"a client's transactions fail on the chain", 1, func(p *modelProcess) {
			c := m.call(0, 1)
			c.Inputs.Nullifiers[0] = m.element(failingNote)
			m.trySubmit(p, c)
		}},
	}
}

// copy sends another client's request, unchanged or with A negated. It uses no key, a key of the
// stranger, or the other client's key.
func (m *model) copy(p *modelProcess, s *modelSubmission) {
	if s == nil {
		return
	}
	c, from := s.call, modelSender{client: m.client()}
	if m.rand.IntN(2) == 0 {
		c = withNegatedA(c)
	}
	from.key = []string{"", "a copier's", s.from.key}[m.rand.IntN(3)]
	_, _ = m.post(p, c, from)
}

// client returns a new client, or zero when clients cannot be distinguished.
func (w *modelWorld) client() (c [32]byte) {
	if w.clients {
		c = w.element(10)
	}
	return c
}

// withNegatedA returns the same call with a proof whose A is negated. Anybody can make such a proof.
func withNegatedA(c *shieldpool.Call) *shieldpool.Call {
	negated := *c
	negated.Proof = slices.Clone(c.Proof)
	negated.Proof[0] ^= 1
	return &negated
}

func hasNegatedA(c *shieldpool.Call) bool { return c.Proof[0] != 0 }

// failingNote marks notes whose transactions fail on the chain, but in no simulation, because their
// client changes an account between the two.
const failingNote = 9

func failsOnChain(c *shieldpool.Call) bool { return c.Inputs.Nullifiers[0][1] == failingNote }

// paidFailures counts the attempts of a submission that are in the database and have
// finally failed on the chain, each for a fee. Known are those that no search denied.
func (w *modelWorld) paidFailures(t *modelSubmission) (all, known int) {
	final := w.chain.newestView().finalized
	for _, a := range w.attemptsOf(t) {
		if l := w.chain.landing(a.signature, final); l != nil && l.err != nil && !a.lost {
			all++
			if !a.denied {
				known++
			}
		}
	}
	return all, known
}

// deny records that a search denied the attempts. A relay that believes it does not count a failure
// that they paid for.
func (w *modelWorld) deny(signatures []solana.Signature) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range signatures {
		if a := w.attempts[s]; a != nil {
			a.denied = true
		}
	}
}

// sender returns the sender in a request's context.
func sender(ctx context.Context) modelSender {
	from, _ := ctx.Value(senderKey{}).(modelSender)
	return from
}

// hasKey reports whether a request has the key under which the submission was accepted. When clients
// cannot be distinguished, the key is valid only for the same content.
func (t *modelSubmission) hasKey(c *shieldpool.Call, from modelSender) bool {
	return from.key != "" && t.from == from && (from.client != [32]byte{} || t.hash == submission.ContentHash(c))
}

// keyOwner returns the submission that was accepted under the request's key; nil when its sender has not
// used the key.
func (w *modelWorld) keyOwner(c *shieldpool.Call, from modelSender) *modelSubmission {
	if i := slices.IndexFunc(w.submissions, func(t *modelSubmission) bool { return t.hasKey(c, from) }); i >= 0 {
		return w.submissions[i]
	}
	return nil
}

// checkRepeat checks which submission a request is answered with. A key is answered with the submission
// accepted under it. A client that repeats another client's content gets that submission marked as
// Repeated, because the interface gives the id of a landed submission only to its sender.
func (w *modelWorld) checkRepeat(c *shieldpool.Call, from modelSender, s *submission.Submission) {
	t, owner := w.find(s.ID), w.keyOwner(c, from)
	switch own := owner != nil || s == t.accepted; {
	case owner != nil && owner != t:
		w.violated("a key was answered with %s, but belongs to %s", w.shortID(s.ID), w.shortID(owner.id))
	case s.Repeated == own:
		w.violated("%s was returned to its own sender: %v, marked as repeated: %v", w.shortID(s.ID), own, s.Repeated)
	case t.last.State == submission.Completed && s.State != submission.Completed:
		w.violated("%s has landed, but a repeated request returned state %s", w.shortID(s.ID), s.State)
	case s.State == submission.Completed:
		w.checkLanding(&submission.Landing{Lease: s.Lease(), Outcome: submission.Outcome{Signature: *s.Signature}})
	}
}

// checkRefusal checks that a request is not refused because of requests of strangers.
func (w *modelWorld) checkRefusal(c *shieldpool.Call, from modelSender, code refusal.Code) {
	hash, owner := submission.ContentHash(c), w.keyOwner(c, from)
	switch {
	case owner != nil && owner.hash == hash && code != refusal.DatabaseUnavailable:
		w.violated("the key of %s was refused with %s to its sender", w.shortID(owner.id), code)
	case owner == nil && code == refusal.IdempotencyKeyReused:
		w.violated("a key was refused as reused, but its sender has not used it")
	case code == refusal.ProofInvalid && !hasNegatedA(c):
		w.violated("a valid proof was refused")
	case code == refusal.NullifierReserved && slices.ContainsFunc(w.submissions, func(t *modelSubmission) bool {
		return t.last.State != submission.Failed && t.hash == hash
	}):
		w.violated("a repeated request was refused because its own submission reserved the notes")
	}
}
