package cluster

import (
	"context"
	"fmt"
	"time"
)

// Poll is the time between two looks.
const Poll = 500 * time.Millisecond

// Minutes makes the long waits readable.
func Minutes(n float64) time.Duration { return time.Duration(n * float64(time.Minute)) }

// Await looks until look gives no complaint, and fails with the last one when
// the time is over. An error of look is a complaint too: API servers stall, and
// what is not there may come.
func Await(ctx context.Context, what string, within time.Duration, look func(context.Context) (complaint string, err error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("%s have passed", within))
	defer cancel()
	tick := time.NewTicker(Poll)
	defer tick.Stop()
	last := "it was not looked at"
	for {
		complaint, err := look(ctx)
		switch {
		case err == nil && complaint == "":
			return nil
		case err != nil && ctx.Err() == nil:
			last = err.Error()
		case err == nil:
			last = complaint
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w: %s", what, context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}

// Hold looks for a time and fails with the first complaint: what must not
// happen did.
func Hold(ctx context.Context, what string, during time.Duration, look func(context.Context) (complaint string, err error)) error {
	over, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	tick := time.NewTicker(Poll)
	defer tick.Stop()
	for looks := 0; ; {
		complaint, err := look(ctx)
		switch {
		case err == nil && complaint != "":
			return fmt.Errorf("%s: %s", what, complaint)
		case err == nil:
			looks++
		}
		select {
		case <-over.Done():
			if err := ctx.Err(); err != nil {
				return err
			}
			if looks == 0 {
				return fmt.Errorf("%s: could not be looked at for %s: %w", what, during, err)
			}
			return nil
		case <-tick.C:
		}
	}
}
