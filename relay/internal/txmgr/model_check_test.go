package txmgr_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// The invariants, each checked when it could be broken: a commit, a send, an answer, an outcome.
// They are the specification; none of them asks the engine.

// row is the database's state of a submission and its attempts.
func (w *modelWorld) row(id uuid.UUID) (r modelRow) {
	rows, err := w.store.Pool.Query(context.WithoutCancel(w.t.Context()), modelRows+` WHERE id = $1`, id)
	if err == nil {
		r, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[modelRow])
	}
	if err != nil {
		w.violated("read the row of %s: %v", w.short(id), err)
	}
	return r
}

// accepted tracks a submission from its commit on. compare checks after each operation that there
// is one live submission per nullifier.
func (w *modelWorld) accepted(p *modelProcess, from modelSender, s *submission.Submission) {
	w.note("%s accepts %s, %s, leaves at its root %d", p.name, w.short(s.ID), s.Kind, s.RootSeq)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken = append(w.taken, &modelTaken{id: s.ID, call: s.Call, hash: submission.ContentHash(s.Call), from: from, made: s})
}

// find is an accepted submission; nil when no process ever accepted it.
func (w *modelWorld) find(id uuid.UUID) *modelTaken {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(w.taken, func(t *modelTaken) bool { return t.id == id }); i >= 0 {
		return w.taken[i]
	}
	return nil
}

// answered checks a client's answer: an earlier submission only if it does the same and has not
// failed, a conflict only if there is one.
func (w *modelWorld) answered(p *modelProcess, c *shieldpool.Call, from modelSender, s *submission.Submission, err error) {
	r, refused := refusal.As(err)
	switch {
	case refused:
		w.note("%s refuses a request: %s", p.name, r.Code)
		if r.Code == refusal.NullifierReserved && !w.reserved(c) {
			w.violated("a request was refused for notes that no submission has")
		}
		w.refused(c, from, r.Code)
	case err != nil:
		w.violated("%s answered a request with %v", p.name, err)
	case submission.ContentHash(s.Call) != submission.ContentHash(c):
		w.violated("a request was answered with %s, which does something else", w.short(s.ID))
	case w.find(s.ID) == nil:
		w.violated("a request was answered with %s, which was never committed", w.short(s.ID))
	case s.State == submission.Failed && !w.find(s.ID).names(c, from):
		w.violated("a request was answered with %s, which has failed: its notes were free", w.short(s.ID))
	default:
		w.told(c, from, s)
	}
}

// reserved reports whether a submission that has not failed spends one of the call's notes.
func (w *modelWorld) reserved(c *shieldpool.Call) bool {
	w.compare()
	for _, t := range w.taken {
		for i, n := range t.call.Inputs.Nullifiers {
			if t.last.State != submission.Failed && t.call.Inputs.HasNullifier(i) && slices.Contains(c.Inputs.Nullifiers[:], n) {
				return true
			}
		}
	}
	return false
}

// recorded checks a new attempt: it is as described, it does what the submission asks for, and
// every earlier one is dead (invariant 4).
func (w *modelWorld) recorded(p *modelProcess, l txmgr.Lease, a *txmgr.Attempt) {
	w.note("%s signs %.4x for %s under epoch %d, valid up to height %d", p.name, a.Signature[:], w.short(l.ID), l.Epoch, a.LastValidBlockHeight)
	taken := w.find(l.ID)
	if taken == nil {
		w.violated("an attempt of %s was committed, which was never accepted", w.short(l.ID))
		return
	}
	tx, err := parseModelTx(w.pool, a.Raw)
	made := w.chain.hashes[a.Blockhash]
	switch {
	case err != nil:
		w.violated("attempt of %s is no transaction: %v", w.short(l.ID), err)
		return
	case tx.signature != a.Signature, tx.payer != a.FeePayer, tx.blockhash != a.Blockhash, a.Cost != tx.fee+tx.rent,
		made == nil || made.slot != a.BlockhashSlot,
		a.LastValidBlockHeight < made.height+w.chain.life, a.LastValidBlockHeight > made.height+w.chain.life && w.hostile.percent == 0 && !w.lied:
		w.violated("attempt of %s is not what its row says", w.short(l.ID))
	case submission.ContentHash(tx.call) != taken.hash:
		w.violated("attempt of %s does not do what was asked", w.short(l.ID))
	}
	if n := w.paid(taken); n >= modelPaid {
		w.violated("%s was signed anew after %d failures on the chain, each of which was paid for", w.short(l.ID), n)
	}
	for _, earlier := range w.attemptsOf(taken) {
		if !earlier.lost && !w.chain.dead(earlier) {
			w.violated("death rule: %s was signed anew as %.4x while %.4x has landed or can land", w.short(l.ID), a.Signature[:], earlier.signature[:])
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[a.Signature] = &modelAttempt{signature: a.Signature, submission: taken, made: made}
}

// attemptsOf are all that were ever committed of a submission.
func (w *modelWorld) attemptsOf(t *modelTaken) (out []*modelAttempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.attempts {
		if a.submission == t {
			out = append(out, a)
		}
	}
	return out
}

// sent checks a transaction that reaches the chain: it is in the database at
// that moment (invariant 3), and on its first time nothing else of its
// submission can land (invariant 4).
func (w *modelWorld) sent(p *modelProcess, tx *modelTx) {
	w.mu.Lock()
	known := w.attempts[tx.signature]
	w.mu.Unlock()
	if known == nil || !known.lost {
		var one int
		err := w.store.Pool.QueryRow(context.WithoutCancel(w.t.Context()), `SELECT 1 FROM attempts WHERE signature = $1`, tx.signature[:]).Scan(&one)
		if err != nil {
			if !errors.Is(err, pgx.ErrNoRows) {
				w.violated("look for a sent attempt: %v", err)
			}
			w.violated("write before send: %s sent %.4x, which the database does not know", p.name, tx.signature[:])
			return
		}
	}
	if known == nil || known.sent {
		return
	}
	w.note("%s sends %.4x of %s", p.name, tx.signature[:], w.short(known.submission.id))
	w.mu.Lock()
	known.sent = true
	w.mu.Unlock()
	if known.lost || w.chain.dead(known) {
		return // a late send of a transaction that can no longer land does no harm
	}
	for _, other := range w.attemptsOf(known.submission) {
		if other != known && !other.lost && !w.chain.dead(other) {
			w.violated("death rule: %s sent %.4x while %.4x has landed or can land", p.name, tx.signature[:], other.signature[:])
		}
	}
}

// landed checks an outcome: a transaction reported as landed has landed, on some fork at least.
func (w *modelWorld) landed(l *submission.Landing) {
	w.chain.mu.Lock()
	defer w.chain.mu.Unlock()
	if !slices.ContainsFunc(w.chain.landings[l.Signature], func(x *modelLanding) bool { return x.err == nil }) {
		w.violated("%s is said to have landed as %.4x, which it never has", w.short(l.ID), l.Signature[:])
	}
}

// failed checks a failure at its commit: nothing of the submission has landed or
// can land, and its reason is true.
func (w *modelWorld) failed(p *modelProcess, id uuid.UUID, code refusal.Code) {
	w.note("%s fails %s: %s", p.name, w.short(id), code)
	taken := w.find(id)
	confirmed := w.chain.newest().confirmed
	for _, a := range w.attemptsOf(taken) {
		l := w.chain.landed(a.signature)
		switch {
		case l != nil && l.err == nil && l.block.height <= confirmed.height:
			w.violated("%s failed with %s, and %.4x of it has landed", w.short(id), code, a.signature[:])
		case !a.lost && !w.chain.dead(a):
			w.violated("death rule: %s failed with %s while %.4x of it can land", w.short(id), code, a.signature[:])
		}
	}
	switch code {
	case refusal.RootNotFound:
		if slices.Contains(confirmed.state.roots, taken.call.Inputs.Root) && !w.chain.drivenOut(taken.call.Inputs.Root) {
			w.violated("%s failed with root_not_found, and its root is in the root history", w.short(id))
		}
	case refusal.NullifierSpent:
		if !w.spentByOthers(taken) {
			w.violated("%s failed with nullifier_spent, and nobody else has finally spent its notes", w.short(id))
		}
	case refusal.ProofInvalid:
		if !isTurned(taken.call) {
			w.violated("%s failed with proof_invalid, and its proof is honest", w.short(id))
		}
	case refusal.ProgramError:
		if n := w.paid(taken); n < modelPaid {
			w.violated("%s failed with program_error after %d failures on the chain", w.short(id), n)
		}
	default:
		w.violated("%s failed with %s, for which the model gives no reason", w.short(id), code)
	}
}

// spentByOthers reports whether another transaction has spent a note of the submission, and it is final.
func (w *modelWorld) spentByOthers(t *modelTaken) bool {
	for _, n := range t.call.Inputs.Nullifiers {
		l := w.chain.newest().finalized.state.spent[n]
		if l != nil && (!w.ours(l.tx.payer) || submission.ContentHash(l.tx.call) != t.hash) {
			return true
		}
	}
	return false
}

// delayed keeps when a deferred row is due again.
func (w *modelWorld) delayed(id uuid.UUID, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d > 0 {
		w.due[id] = w.start.Add(w.ahead + d)
	}
}

// modelRow is the database's state of a submission. Owner is zero when no process has the lease.
type modelRow struct {
	ID         uuid.UUID
	State      submission.State
	Epoch      int64
	Owner      uuid.UUID
	Tries      int
	Hold       string
	Finalized  bool
	RolledBack bool
	Code       string
	// Attempts counts them, Buried and Refused those that are.
	Attempts, Buried, Refused int
}

const modelRows = `SELECT id, state, epoch, COALESCE(lease_owner, '00000000-0000-0000-0000-000000000000'), tries, COALESCE(hold_reason, ''),
	finalized, rolled_back, COALESCE(error_code, ''), a.n, a.dead, a.refused
	FROM submissions s CROSS JOIN LATERAL (SELECT count(*) AS n, count(*) FILTER (WHERE dead) AS dead, count(*) FILTER (WHERE refused) AS refused
		FROM attempts WHERE submission_id = s.id) a`

// compare reads all rows, and checks the conditions on them after every operation.
func (w *modelWorld) compare() {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	rows, err := w.store.Pool.Query(ctx, modelRows)
	modelMust(w.t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[modelRow])
	modelMust(w.t, err)
	now := map[uuid.UUID]modelRow{}
	for _, r := range all {
		now[r.ID] = r
	}
	spends := map[[32]byte]*modelTaken{}
	for _, t := range w.taken {
		was, is := t.last, now[t.id]
		switch {
		case is.State == "":
			w.violated("%s was accepted and is gone", w.short(t.id))
		case is.Epoch < was.Epoch:
			w.violated("%s went from epoch %d back to %d", w.short(t.id), was.Epoch, is.Epoch)
		case (was.State == submission.Failed || was.Finalized) && is != was:
			w.violated("%s changed after its end: from %+v to %+v", w.short(t.id), was, is)
		}
		t.last, t.told = is, t.told || is.State == submission.Completed
		if is.State == submission.Failed && is.RolledBack != t.told {
			w.violated("%s failed, was completed before: %v, and says rolled back: %v", w.short(t.id), t.told, is.RolledBack)
		}
		for i, n := range t.call.Inputs.Nullifiers {
			if is.State == submission.Failed || !t.call.Inputs.HasNullifier(i) {
				continue
			}
			if other := spends[n]; other != nil {
				w.violated("unique index: %s and %s are live and spend the same note", w.short(other.id), w.short(t.id))
			}
			spends[n] = t
		}
	}
}

// truth compares every outcome with the chain, once all is quiet and final.
func (w *modelWorld) truth() {
	w.t.Helper()
	w.compare()
	final := w.chain.newest().finalized
	for _, t := range w.taken {
		s, err := w.store.Get(w.t.Context(), t.id)
		modelMust(w.t, err)
		switch s.State {
		case submission.Completed:
			l := w.chain.landing(*s.Signature, final)
			switch {
			case l == nil || l.err != nil:
				w.violated("%s is completed, and its signature has not landed", w.short(t.id))
			case submission.ContentHash(l.tx.call) != t.hash || !w.ours(l.tx.payer):
				w.violated("%s is completed by a transaction that does something else", w.short(t.id))
			case l.block.slot != s.Slot || !s.Finalized:
				w.violated("%s landed in slot %d, and is said to be in %d, final %v", w.short(t.id), l.block.slot, s.Slot, s.Finalized)
			case !w.placedAt(s.LeafIndices, t, final):
				w.violated("%s has leaves that are elsewhere", w.short(t.id))
			}
		case submission.Failed:
			for _, a := range w.attemptsOf(t) {
				if l := w.chain.landing(a.signature, final); l != nil && l.err == nil && !a.lost {
					w.violated("%s failed with %s, and %.4x of it has landed", w.short(t.id), s.Failure.Code, a.signature[:])
				}
			}
		default:
			w.violated("%s is left unfinished: %s, held %q after %d tries", w.short(t.id), s.State, s.Hold, s.Tries)
		}
	}
}

// placedAt reports whether the leaf indices are where the chain has them.
func (w *modelWorld) placedAt(indices []uint64, t *modelTaken, final *modelBlock) bool {
	for i, c := range t.call.Inputs.Commitments {
		if i >= len(indices) || final.state.placed[c] != indices[i] {
			return false
		}
	}
	return true
}
