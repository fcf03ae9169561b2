package sweep

import "context"

// completeAccounting adds the rest of the payers' history to the accounting. No serving relay has
// the payers' keys any more, so no other process reads this history.
func (r *run) completeAccounting(ctx context.Context) error {
	for {
		complete, err := r.Accounting.Complete(ctx, r.payers())
		switch {
		case err != nil:
			err = r.pauseIfUnavailable(ctx, "complete the old payers' ledger", err)
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
