package txmgr_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// The checks of the invariants. Each runs where its invariant could break: at a commit, a send, an
// answer or an outcome. None of them relies on the relay's own state.

// row reads the database's state of a submission and its attempts.
func (w *modelWorld) row(id uuid.UUID) (r modelRow) {
	rows, err := w.store.Pool.Query(context.WithoutCancel(w.t.Context()), modelRows+` WHERE id = $1`, id)
	if err == nil {
		r, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[modelRow])
	}
	if err != nil {
		w.violated("read the row of %s: %v", w.shortID(id), err)
	}
	return r
}

// recordAccepted records a submission at its commit. checkRows checks after each operation that there
// is at most one live submission per nullifier.
func (w *modelWorld) recordAccepted(p *modelProcess, from modelSender, s *submission.Submission) {
	w.note("%s accepts %s, %s, leaves at its root %d", p.name, w.shortID(s.ID), s.Kind, s.RootSeq)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.submissions = append(w.submissions, &modelSubmission{id: s.ID, call: s.Call, hash: submission.ContentHash(s.Call), from: from, accepted: s})
}

// find returns an accepted submission; nil when no process ever accepted it.
func (w *modelWorld) find(id uuid.UUID) *modelSubmission {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(w.submissions, func(t *modelSubmission) bool { return t.id == id }); i >= 0 {
		return w.submissions[i]
	}
	return nil
}

// checkAnswer checks the answer to a client: it may be an earlier submission only if that has the
// same content and has not failed, and a conflict only if there is one.
func (w *modelWorld) checkAnswer(p *modelProcess, c *shieldpool.Call, from modelSender, s *submission.Submission, err error) {
	r, refused := refusal.As(err)
	switch {
	case refused:
		w.note("%s refuses a request: %s", p.name, r.Code)
		if r.Code == refusal.NullifierReserved && !w.reserved(c) {
			w.violated("a request was refused for its notes, which no submission has reserved")
		}
		w.checkRefusal(c, from, r.Code)
	case err != nil:
		w.violated("%s answered a request with %v", p.name, err)
	case submission.ContentHash(s.Call) != submission.ContentHash(c):
		w.violated("a request was answered with %s, which has other content", w.shortID(s.ID))
	case w.find(s.ID) == nil:
		w.violated("a request was answered with %s, which was never committed", w.shortID(s.ID))
	case s.State == submission.Failed && !w.find(s.ID).hasKey(c, from):
		w.violated("a request was answered with %s, which has failed and has freed its notes", w.shortID(s.ID))
	default:
		w.checkRepeat(c, from, s)
	}
}

// reserved reports whether a submission that has not failed spends one of the call's notes.
func (w *modelWorld) reserved(c *shieldpool.Call) bool {
	w.checkRows()
	for _, t := range w.submissions {
		for i, n := range t.call.Inputs.Nullifiers {
			if t.last.State != submission.Failed && t.call.Inputs.HasNullifier(i) && slices.Contains(c.Inputs.Nullifiers[:], n) {
				return true
			}
		}
	}
	return false
}

// checkAttempt checks a new attempt: its transaction matches its row and the submission, and every
// earlier attempt is dead (invariant 4).
func (w *modelWorld) checkAttempt(p *modelProcess, l txmgr.Lease, a *txmgr.Attempt) {
	w.note("%s signs %.4x for %s under epoch %d, valid up to height %d", p.name, a.Signature[:], w.shortID(l.ID), l.Epoch, a.LastValidBlockHeight)
	sub := w.find(l.ID)
	if sub == nil {
		w.violated("an attempt was committed for %s, which was never accepted", w.shortID(l.ID))
		return
	}
	tx, err := parseModelTx(w.pool, a.Raw)
	made := w.chain.hashes[a.Blockhash]
	switch {
	case err != nil:
		w.violated("the attempt of %s is not a valid transaction: %v", w.shortID(l.ID), err)
		return
	case tx.signature != a.Signature, tx.payer != a.FeePayer, tx.blockhash != a.Blockhash, !isRent(a.Cost-tx.fee-tx.tip, tx.accounts), a.Tip != tx.tip, (a.Lane != "") != (tx.tip > 0),
		made == nil || made.slot != a.BlockhashSlot,
		a.LastValidBlockHeight < made.height+w.chain.blockhashLife, a.LastValidBlockHeight > made.height+w.chain.blockhashLife && w.liar.percent == 0 && !w.lied:
		w.violated("the attempt of %s does not match its row", w.shortID(l.ID))
	case submission.ContentHash(tx.call) != sub.hash:
		w.violated("the attempt of %s does not match the submission's content", w.shortID(l.ID))
	}
	if _, n := w.paidFailures(sub); n >= modelMaxFailures {
		w.violated("%s was signed anew after %d paid failures on the chain", w.shortID(l.ID), n)
	}
	w.checkDeath(sub, tx.signature, tx.fee, "signed")
	for _, other := range w.attemptsOf(sub) {
		if !other.lost && !w.chain.dead(other) && tx.fee <= other.fee && tx.tip <= other.tip {
			w.violated("%.4x of %s pays no more than %.4x, which has landed or can land", tx.signature[:], w.shortID(sub.id), other.signature[:])
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[a.Signature] = &modelAttempt{signature: a.Signature, submission: sub, blockhashOf: made, fee: tx.fee, tip: tx.tip}
}

// attemptsOf returns all attempts that were ever committed for a submission.
func (w *modelWorld) attemptsOf(t *modelSubmission) (out []*modelAttempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.attempts {
		if a.submission == t {
			out = append(out, a)
		}
	}
	return out
}

// checkSend checks a transaction that reaches the chain: it is in the database at
// that moment (invariant 3), and at its first send no other attempt of its
// submission can land (invariant 4).
func (w *modelWorld) checkSend(p *modelProcess, tx *modelTx) {
	w.mu.Lock()
	known := w.attempts[tx.signature]
	w.mu.Unlock()
	if known == nil || !known.lost {
		var one int
		err := w.store.Pool.QueryRow(context.WithoutCancel(w.t.Context()), `SELECT 1 FROM attempts WHERE signature = $1`, tx.signature[:]).Scan(&one)
		if err != nil {
			if !errors.Is(err, pgx.ErrNoRows) {
				w.violated("read a sent attempt: %v", err)
			}
			w.violated("write before send: %s sent %.4x, which the database does not know", p.name, tx.signature[:])
			return
		}
	}
	if known == nil || known.sent {
		return
	}
	w.note("%s sends %.4x of %s", p.name, tx.signature[:], w.shortID(known.submission.id))
	w.mu.Lock()
	known.sent = true
	w.mu.Unlock()
	if known.lost || w.chain.dead(known) {
		return // a late send of a transaction that can no longer land does no harm
	}
	w.checkDeath(known.submission, tx.signature, tx.fee, "sent")
}

// checkDeath checks that no other attempt of a submission can land, or has landed (invariant 4). Early
// attempts are an exception: a few may land, if the submission has a nullifier and if the fees of those
// that fail stay within the bound.
func (w *modelWorld) checkDeath(s *modelSubmission, signature solana.Signature, fee uint64, what string) {
	live, sum, lowest := 1, fee, fee
	for _, other := range w.attemptsOf(s) {
		if other.signature != signature && !other.lost && !w.chain.dead(other) {
			live, sum, lowest = live+1, sum+other.fee, min(lowest, other.fee)
		}
	}
	hasNullifier := s.call.Inputs.HasNullifier(0) || s.call.Inputs.HasNullifier(1)
	if live > 1 && (w.chain.maxEarlyFees == 0 || !hasNullifier || live > 3 || sum-lowest > w.chain.maxEarlyFees) {
		w.violated("death rule: %.4x of %s was %s while %d others have landed or can land, and %d lamports may be paid in vain", signature[:], w.shortID(s.id), what, live-1, sum-lowest)
	}
}

// checkLanding checks an outcome: a transaction reported as landed has landed on at least one fork.
func (w *modelWorld) checkLanding(l *submission.Landing) {
	w.chain.mu.Lock()
	defer w.chain.mu.Unlock()
	if !slices.ContainsFunc(w.chain.landings[l.Signature], func(x *modelLanding) bool { return x.err == nil }) {
		w.violated("%s was reported as landed by %.4x, which never landed", w.shortID(l.ID), l.Signature[:])
	}
}

// checkFailure checks a failure at its commit: no attempt of the submission has landed or
// can land, and the reason is true.
func (w *modelWorld) checkFailure(p *modelProcess, id uuid.UUID, code refusal.Code) {
	w.note("%s fails %s: %s", p.name, w.shortID(id), code)
	sub := w.find(id)
	confirmed := w.chain.newestView().confirmed
	for _, a := range w.attemptsOf(sub) {
		l := w.chain.landed(a.signature)
		switch {
		case l != nil && l.err == nil && l.block.height <= confirmed.height:
			w.violated("%s failed with %s, although its attempt %.4x has landed", w.shortID(id), code, a.signature[:])
		case !a.lost && !w.chain.dead(a):
			w.violated("death rule: %s failed with %s while its attempt %.4x can land", w.shortID(id), code, a.signature[:])
		}
	}
	switch code {
	case refusal.RootNotFound:
		if slices.Contains(confirmed.state.roots, sub.call.Inputs.Root) && !w.chain.wasEvicted(sub.call.Inputs.Root) {
			w.violated("%s failed with root_not_found, although its root is in the root history", w.shortID(id))
		}
	case refusal.NullifierSpent:
		if !w.spentByOthers(sub) {
			w.violated("%s failed with nullifier_spent, although no other transaction has finally spent its notes", w.shortID(id))
		}
	case refusal.ProofInvalid:
		if !hasNegatedA(sub.call) {
			w.violated("%s failed with proof_invalid, although its proof is valid", w.shortID(id))
		}
	case refusal.ProgramError:
		if n, _ := w.paidFailures(sub); n < modelMaxFailures {
			w.violated("%s failed with program_error after %d failures on the chain, want %d", w.shortID(id), n, modelMaxFailures)
		}
	default:
		w.violated("%s failed with %s, for which the model gives no reason", w.shortID(id), code)
	}
}

// spentByOthers reports whether another transaction, which is final, has spent a note of the submission.
func (w *modelWorld) spentByOthers(t *modelSubmission) bool {
	for _, n := range t.call.Inputs.Nullifiers {
		l := w.chain.newestView().finalized.state.spent[n]
		if l != nil && (!w.isPayer(l.tx.payer) || submission.ContentHash(l.tx.call) != t.hash) {
			return true
		}
	}
	return false
}

// recordDelay records when a deferred row is due again.
func (w *modelWorld) recordDelay(id uuid.UUID, d time.Duration) {
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
	// Attempts counts all attempts, DeadAttempts counts those marked as dead, and Rejected counts
	// those that preflight refused.
	Attempts, DeadAttempts, Rejected int
}

const modelRows = `SELECT id, state, epoch, COALESCE(lease_owner, '00000000-0000-0000-0000-000000000000'), tries, COALESCE(hold_reason, ''),
	finalized, rolled_back, COALESCE(error_code, ''), a.n, a.dead, a.refused
	FROM submissions s CROSS JOIN LATERAL (SELECT count(*) AS n, count(*) FILTER (WHERE dead) AS dead, count(*) FILTER (WHERE refused) AS refused
		FROM attempts WHERE submission_id = s.id) a`

// checkRows reads all rows after every operation, and checks them against the model and each other.
func (w *modelWorld) checkRows() {
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
	spends := map[[32]byte]*modelSubmission{}
	for _, t := range w.submissions {
		before, after := t.last, now[t.id]
		switch {
		case after.State == "":
			w.violated("%s was accepted, but has no row", w.shortID(t.id))
		case after.Epoch < before.Epoch:
			w.violated("%s went from epoch %d back to %d", w.shortID(t.id), before.Epoch, after.Epoch)
		case (before.State == submission.Failed || before.Finalized) && after != before:
			w.violated("%s changed after its end: from %+v to %+v", w.shortID(t.id), before, after)
		}
		t.last, t.wasCompleted = after, t.wasCompleted || after.State == submission.Completed
		if after.State == submission.Failed && after.RolledBack != t.wasCompleted {
			w.violated("%s failed; it was completed before: %v, but rolled_back is %v", w.shortID(t.id), t.wasCompleted, after.RolledBack)
		}
		for i, n := range t.call.Inputs.Nullifiers {
			if after.State == submission.Failed || !t.call.Inputs.HasNullifier(i) {
				continue
			}
			if other := spends[n]; other != nil {
				w.violated("unique index: %s and %s have not failed and spend the same note", w.shortID(other.id), w.shortID(t.id))
			}
			spends[n] = t
		}
	}
}

// checkOutcomes compares every outcome with the chain, once all work is done and final.
func (w *modelWorld) checkOutcomes() {
	w.t.Helper()
	w.checkRows()
	final := w.chain.newestView().finalized
	for _, t := range w.submissions {
		s, err := w.store.Get(w.t.Context(), t.id)
		modelMust(w.t, err)
		switch s.State {
		case submission.Completed:
			l := w.chain.landing(*s.Signature, final)
			switch {
			case l == nil || l.err != nil:
				w.violated("%s is completed, but its signature has not landed", w.shortID(t.id))
			case submission.ContentHash(l.tx.call) != t.hash || !w.isPayer(l.tx.payer):
				w.violated("%s is completed by a transaction with other content or of another payer", w.shortID(t.id))
			case l.block.slot != s.Slot || !s.Finalized:
				w.violated("%s landed in slot %d; its row says slot %d, final %v", w.shortID(t.id), l.block.slot, s.Slot, s.Finalized)
			case !w.placedAt(s.LeafIndices, t, final):
				w.violated("%s has wrong leaf indices", w.shortID(t.id))
			}
		case submission.Failed:
			for _, a := range w.attemptsOf(t) {
				if l := w.chain.landing(a.signature, final); l != nil && l.err == nil && !a.lost {
					w.violated("%s failed with %s, although its attempt %.4x has landed", w.shortID(t.id), s.Failure.Code, a.signature[:])
				}
			}
		default:
			w.violated("%s is left unfinished: %s, held %q after %d tries", w.shortID(t.id), s.State, s.Hold, s.Tries)
		}
	}
}

// placedAt reports whether the leaf indices are those of the chain.
func (w *modelWorld) placedAt(indices []uint64, t *modelSubmission, final *modelBlock) bool {
	for i, c := range t.call.Inputs.Commitments {
		if i >= len(indices) || final.state.placed[c] != indices[i] {
			return false
		}
	}
	return true
}
