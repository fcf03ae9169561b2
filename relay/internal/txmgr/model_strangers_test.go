package txmgr_test

import (
	"context"
	"slices"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Hostile clients of the model. They have only what everybody can have: the calls that others sent,
// the Idempotency-Keys that these chose, and money.

// modelSender is the sender of a request, with its Idempotency-Key, if any. The client is zero when
// the relay requires no API keys.
type modelSender struct {
	client [32]byte
	key    string
}

// senderKey finds, in a request's context, its sender.
type senderKey struct{}

// modelPaid is how many failures on the chain the relay pays for in one submission.
const modelPaid = 8

// ofStrangers are the actions of hostile clients.
func (m *model) ofStrangers() []modelOperation {
	landed := func(s *modelTaken) bool { return s.last.State == submission.Completed }
	return []modelOperation{
		{"a stranger copies what has landed", 2, func(p *modelProcess) { m.copy(p, m.some(landed)) }},
		{"a stranger copies a request", 1, func(p *modelProcess) { m.copy(p, m.some(func(*modelTaken) bool { return true })) }},
		{"a stranger's turned copy comes first", 1, func(p *modelProcess) {
			c := m.call(0, 2)
			m.try(p, turn(c))
			m.try(p, c)
		}},
		{"a stranger uses another's key", 2, func(p *modelProcess) {
			first := m.some(func(s *modelTaken) bool { return s.from.key != "" })
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
			m.try(p, c)
		}},
	}
}

// copy sends another client's request, unchanged or with A negated, under no key, a key of the
// stranger's own, or the other's.
func (m *model) copy(p *modelProcess, s *modelTaken) {
	if s == nil {
		return
	}
	c, from := s.call, modelSender{client: m.client()}
	if m.rand.IntN(2) == 0 {
		c = turn(c)
	}
	from.key = []string{"", "a copier's", s.from.key}[m.rand.IntN(3)]
	_, _ = m.post(p, c, from)
}

// client is one without any other request, when clients can be distinguished.
func (w *modelWorld) client() (c [32]byte) {
	if w.clients {
		c = w.element(10)
	}
	return c
}

// turn is the same call over a proof whose A has the other sign: anybody can make it.
func turn(c *shieldpool.Call) *shieldpool.Call {
	turned := *c
	turned.Proof = slices.Clone(c.Proof)
	turned.Proof[0] ^= 1
	return &turned
}

func isTurned(c *shieldpool.Call) bool { return c.Proof[0] != 0 }

// failingNote marks notes whose transactions fail on the chain, but in no simulation: their client
// changes an account between the two.
const failingNote = 9

func failsOnChain(c *shieldpool.Call) bool { return c.Inputs.Nullifiers[0][1] == failingNote }

// paid counts the attempts of a submission that the database has and that have
// finally failed on the chain, each for a fee.
func (w *modelWorld) paid(t *modelTaken) (n int) {
	final := w.chain.newest().finalized
	for _, a := range w.attemptsOf(t) {
		if l := w.chain.landing(a.signature, final); l != nil && l.err != nil && !a.lost {
			n++
		}
	}
	return n
}

// sender is the sender of a context's request.
func sender(ctx context.Context) modelSender {
	from, _ := ctx.Value(senderKey{}).(modelSender)
	return from
}

// names reports whether a request names the exact key under which a submission was accepted. When
// clients cannot be distinguished, a key stands for its content alone.
func (t *modelTaken) names(c *shieldpool.Call, from modelSender) bool {
	return from.key != "" && t.from == from && (from.client != [32]byte{} || t.hash == submission.ContentHash(c))
}

// owner is the submission of a key; nil when its sender has not used it.
func (w *modelWorld) owner(c *shieldpool.Call, from modelSender) *modelTaken {
	if i := slices.IndexFunc(w.taken, func(t *modelTaken) bool { return t.names(c, from) }); i >= 0 {
		return w.taken[i]
	}
	return nil
}

// told checks with whose submission a request is answered: a key stands for the submission accepted
// under it. A client that repeats another's content gets that submission's outcome, but not as its
// sender; the interface gives only the sender the id of a landed submission.
func (w *modelWorld) told(c *shieldpool.Call, from modelSender, s *submission.Submission) {
	t, owner := w.find(s.ID), w.owner(c, from)
	switch own := owner != nil || s == t.made; {
	case owner != nil && owner != t:
		w.violated("a key was answered with %s, and stands for %s", w.short(s.ID), w.short(owner.id))
	case s.Repeated == own:
		w.violated("%s was answered to its own sender: %v, as a repeat: %v", w.short(s.ID), own, s.Repeated)
	case t.last.State == submission.Completed && s.State != submission.Completed:
		w.violated("%s has landed, and who repeats it is told %s", w.short(s.ID), s.State)
	case s.State == submission.Completed:
		w.landed(&submission.Landing{Lease: s.Lease(), Outcome: submission.Outcome{Signature: *s.Signature}})
	}
}

// refused checks that a request is not refused because of what strangers have sent.
func (w *modelWorld) refused(c *shieldpool.Call, from modelSender, code refusal.Code) {
	hash, owner := submission.ContentHash(c), w.owner(c, from)
	switch {
	case owner != nil && owner.hash == hash && code != refusal.DatabaseUnavailable:
		w.violated("a key stands for %s, and its sender was refused: %s", w.short(owner.id), code)
	case owner == nil && code == refusal.IdempotencyKeyReused:
		w.violated("a key was refused that its sender has not used")
	case code == refusal.ProofInvalid && !isTurned(c):
		w.violated("an honest proof was refused")
	case code == refusal.NullifierReserved && slices.ContainsFunc(w.taken, func(t *modelTaken) bool {
		return t.last.State != submission.Failed && t.hash == hash
	}):
		w.violated("a request was refused for the notes of the very submission that it repeats")
	}
}
