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
