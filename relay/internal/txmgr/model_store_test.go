package txmgr_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/admission"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// modelLease is the duration of a lease: only the driver lets leases lapse.
	modelLease = time.Hour
	// modelLater is the delay of a deferred row: only the driver makes the row due earlier.
	modelLater = 24 * time.Hour
	// modelMaxRetryDelay is the longest delay after failures on the chain. Another test covers the
	// real delays, with which the model would take too long.
	modelMaxRetryDelay = modelSlot
)

// modelStore is the real store, with the faults of a process's calls. It checks that a write under a
// lease that the row no longer has changes nothing.
type modelStore struct {
	submission.Store
	*modelProcess
}

// under makes one write under a lease.
func (s modelStore) under(ctx context.Context, method string, l txmgr.Lease, write func(context.Context) error) error {
	_, err := ask(ctx, s.modelProcess, method, l.ID.String(), noDatabase, func(ctx context.Context, _ modelFault, _ modelView) (struct{}, error) {
		unchanged := s.guard(method, l)
		err := write(ctx)
		unchanged(err == nil)
		if err != nil && !errors.Is(err, txmgr.ErrLeaseLost) {
			s.w.violated("%s: %s on %s: %v", s.name, method, s.w.shortID(l.ID), err)
		}
		return struct{}{}, err
	})
	return err
}

// guard reads a row before a write under a lease. If the lease is not valid, the returned function
// checks that the write failed and changed nothing.
func (s modelStore) guard(method string, l txmgr.Lease) func(wrote bool) {
	before := s.w.row(l.ID)
	if before.Epoch == l.Epoch && before.Owner == s.worker {
		return func(bool) {}
	}
	return func(wrote bool) {
		if after := s.w.row(l.ID); wrote || after != before {
			s.w.violated("epoch check: %s wrote %q on %s under epoch %d, whose lease it had lost", s.name, method, s.w.shortID(l.ID), l.Epoch)
		}
	}
}

// underMany makes one write under many leases.
func (s modelStore) underMany(ctx context.Context, method string, ls []submission.Landing, write func(context.Context) ([]txmgr.Lease, error)) ([]txmgr.Lease, error) {
	return ask(ctx, s.modelProcess, method, "", noDatabase, func(ctx context.Context, _ modelFault, _ modelView) ([]txmgr.Lease, error) {
		unchanged := make([]func(bool), len(ls))
		for i := range ls {
			unchanged[i] = s.guard(method, ls[i].Lease)
			// One batch may contain outcomes of a process's older lease and of its present lease.
			if slices.ContainsFunc(ls, func(l submission.Landing) bool { return l.ID == ls[i].ID && l.Epoch != ls[i].Epoch }) {
				unchanged[i] = func(bool) {}
			}
		}
		lost, err := write(ctx)
		if err != nil {
			s.w.violated("%s: %s: %v", s.name, method, err)
		}
		for i := range ls {
			isLost := slices.Contains(lost, ls[i].Lease)
			unchanged[i](!isLost)
			s.w.checkLanding(&ls[i])
			s.w.note("%s: %s %s, signature %.4x in slot %d, lost %v", s.name, method, s.w.shortID(ls[i].ID), ls[i].Signature[:], ls[i].Slot, isLost)
		}
		return lost, err
	})
}

// Accept uses the idempotency key of the sender in ctx, because the driver passes none.
func (s modelStore) Accept(ctx context.Context, sub *submission.Submission, _ []byte, worker *uuid.UUID) (*submission.Submission, error) {
	step, _ := ctx.Value(stepKey{}).(*modelStep)
	got, err := ask(ctx, s.modelProcess, "accept", sub.ID.String(), noDatabase, func(ctx context.Context, _ modelFault, _ modelView) (*submission.Submission, error) {
		from := sender(ctx)
		got, err := s.Store.Accept(ctx, sub, admission.KeyHash(from.key, from.client, sub.Call), worker)
		if err == nil && got == sub {
			s.w.recordAccepted(s.modelProcess, from, sub)
		}
		return got, err
	})
	if step != nil {
		step.lease, step.started = sub.Lease(), err == nil && got == sub && sub.State == submission.Processing
		close(step.acceptEnded)
	}
	return got, err
}

func (s modelStore) FindRepeated(ctx context.Context, sub *submission.Submission, _ []byte) (*submission.Submission, error) {
	return ask(ctx, s.modelProcess, "repeat", "", noDatabase, func(ctx context.Context, _ modelFault, _ modelView) (*submission.Submission, error) {
		from := sender(ctx)
		return s.Store.FindRepeated(ctx, sub, admission.KeyHash(from.key, from.client, sub.Call))
	})
}

func (s modelStore) Heartbeat(ctx context.Context, w txmgr.Worker, _ time.Duration) (bool, error) {
	return ask(ctx, s.modelProcess, "heartbeat", "", noDatabase, func(ctx context.Context, _ modelFault, _ modelView) (bool, error) {
		return s.Store.Heartbeat(ctx, w, modelLease)
	})
}

func (s modelStore) FreeDeadProcesses(ctx context.Context) (int, error) {
	return ask(ctx, s.modelProcess, "freeDead", "", noDatabase, func(ctx context.Context, _ modelFault, _ modelView) (int, error) {
		return s.Store.FreeDeadProcesses(ctx)
	})
}

func (s modelStore) ReleaseAll(ctx context.Context, worker uuid.UUID) (int, error) {
	return ask(ctx, s.modelProcess, "releaseAll", "", noDatabase, func(ctx context.Context, _ modelFault, _ modelView) (int, error) {
		return s.Store.ReleaseAll(ctx, worker)
	})
}

func (s modelStore) Leases(ctx context.Context, worker uuid.UUID) ([]txmgr.Lease, error) {
	return ask(ctx, s.modelProcess, "leases", "", noDatabase, func(ctx context.Context, _ modelFault, _ modelView) ([]txmgr.Lease, error) {
		return s.Store.Leases(ctx, worker)
	})
}

func (s modelStore) Claim(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return s.claim(ctx, worker, limit, s.Store.Claim)
}

func (s modelStore) Probe(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return s.claim(ctx, worker, limit, s.Store.Probe)
}

// claim claims one job at a time, so that the steps of a process run one after the other.
func (s modelStore) claim(ctx context.Context, worker uuid.UUID, limit int, claim func(context.Context, uuid.UUID, int) ([]*txmgr.Job, error)) ([]*txmgr.Job, error) {
	return ask(ctx, s.modelProcess, "claim", "", noDatabase, func(ctx context.Context, _ modelFault, _ modelView) ([]*txmgr.Job, error) {
		claimed, err := claim(ctx, worker, min(limit, 1))
		for _, c := range claimed {
			s.w.note("%s claims %s, epoch %d, %d live and %d dead attempts", s.name, s.w.shortID(c.ID), c.Epoch, len(c.Live), len(c.Dead))
			if step, ok := ctx.Value(stepKey{}).(*modelStep); ok {
				step.lease = c.Lease
			}
		}
		return claimed, err
	})
}

func (s modelStore) ClaimLanded(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return ask(ctx, s.modelProcess, "claim landed", "", noDatabase, func(ctx context.Context, _ modelFault, _ modelView) ([]*txmgr.Job, error) {
		return s.Store.ClaimLanded(ctx, worker, limit)
	})
}

func (s modelStore) Release(ctx context.Context, l txmgr.Lease, delay time.Duration, hold string) error {
	return s.under(ctx, "release", l, func(ctx context.Context) error {
		later := time.Duration(0)
		if delay > 0 {
			later = modelLater
		}
		err := s.Store.Release(ctx, l, later, hold)
		if err == nil {
			s.w.note("%s defers %s by %s, held %q", s.name, s.w.shortID(l.ID), delay, hold)
			if hold == submission.HoldFailing {
				delay = min(delay, modelMaxRetryDelay)
			}
			s.w.recordDelay(l.ID, delay)
		}
		return err
	})
}

func (s modelStore) RecordAttempt(ctx context.Context, l txmgr.Lease, a txmgr.Attempt) error {
	return s.under(ctx, "record", l, func(ctx context.Context) error {
		err := s.Store.RecordAttempt(ctx, l, a)
		if err == nil {
			s.w.checkAttempt(s.modelProcess, l, &a)
		}
		return err
	})
}

func (s modelStore) MarkAttemptRejected(ctx context.Context, l txmgr.Lease, sig solana.Signature) error {
	return s.under(ctx, "reject", l, func(ctx context.Context) error { return s.Store.MarkAttemptRejected(ctx, l, sig) })
}

func (s modelStore) MarkAttemptsDead(ctx context.Context, l txmgr.Lease, dead []txmgr.DeadAttempt) error {
	return s.under(ctx, "markDead", l, func(ctx context.Context) error {
		err := s.Store.MarkAttemptsDead(ctx, l, dead)
		for _, d := range dead {
			if err == nil {
				s.w.note("%s marks %.4x of %s as dead", s.name, d.Signature[:], s.w.shortID(l.ID))
			}
		}
		return err
	})
}

func (s modelStore) Complete(ctx context.Context, ls []submission.Landing) ([]txmgr.Lease, error) {
	slices.SortFunc(ls, func(x, y submission.Landing) int { return bytes.Compare(x.ID[:], y.ID[:]) })
	return s.underMany(ctx, "complete", ls, func(ctx context.Context) ([]txmgr.Lease, error) { return s.Store.Complete(ctx, ls) })
}

func (s modelStore) Finalize(ctx context.Context, ls []submission.Landing, pins []submission.ProofAPin) ([]txmgr.Lease, error) {
	slices.SortFunc(ls, func(x, y submission.Landing) int { return bytes.Compare(x.ID[:], y.ID[:]) })
	for _, pin := range pins {
		if pin.Encoding != "plain" {
			s.w.violated("%s pins an encoding of A that the program does not accept, by %.4x", s.name, pin.Signature[:])
		}
	}
	return s.underMany(ctx, "finalize", ls, func(ctx context.Context) ([]txmgr.Lease, error) { return s.Store.Finalize(ctx, ls, pins) })
}

func (s modelStore) Reopen(ctx context.Context, l txmgr.Lease) error {
	return s.under(ctx, "reopen", l, func(ctx context.Context) error {
		err := s.Store.Reopen(ctx, l)
		if err == nil {
			s.w.note("%s reopens %s", s.name, s.w.shortID(l.ID))
		}
		return err
	})
}

func (s modelStore) Fail(ctx context.Context, l txmgr.Lease, why *refusal.Refusal) error {
	return s.under(ctx, "fail", l, func(ctx context.Context) error {
		err := s.Store.Fail(ctx, l, why)
		if err == nil {
			s.w.checkFailure(s.modelProcess, l.ID, why.Code)
		}
		return err
	})
}
