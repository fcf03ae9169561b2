package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
)

// withLocks waits until it has locked the accounts, and runs f while they are locked.
func (r *run) withLocks(ctx context.Context, accounts []solana.PublicKey, f func(context.Context) error) error {
	r.refused, r.lastSent = map[solana.Signature]bool{}, map[solana.Signature]time.Time{}
	for {
		session, err := r.Store.Lock(ctx, accounts)
		if err == nil {
			r.session = session
			break
		}
		if !errors.Is(err, ErrLocked) {
			return r.wrapEnd(ctx, fmt.Errorf("lock the keys: %w", err))
		}
		if err := r.pause(ctx, err.Error()); err != nil {
			return err
		}
	}
	defer r.session.Close()
	return r.wrapEnd(ctx, f(ctx))
}
