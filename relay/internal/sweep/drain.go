package sweep

import (
	"context"
	"fmt"
)

// drain waits until the database shows that no attempt of the payers can land any more
// and that all landed attempts are finalized.
func (r *run) drain(ctx context.Context) error {
	for {
		u, err := r.Store.Unresolved(ctx, r.payers())
		if err != nil {
			return fmt.Errorf("count attempts: %w", err)
		}
		if u.Total() == 0 {
			return nil
		}
		waitingFor := fmt.Sprintf("%d attempts of these payers that may still land and %d that are not final; a serving relay resolves them", u.Open, u.Unfinalized)
		if err := r.pause(ctx, waitingFor); err != nil {
			return err
		}
	}
}

// completeAccounting reads the payers' history into the accounting up to its end: no
// serving relay has their keys any more, so no other process reads it.
func (r *run) completeAccounting(ctx context.Context) error {
	for {
		complete, err := r.Accounting.Complete(ctx, r.payers())
		switch {
		case err != nil:
			err = r.retry(ctx, "complete the old payers' ledger", err)
		case !complete:
			err = r.pause(ctx, "the old payers' ledger to reach the end of their history")
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}
