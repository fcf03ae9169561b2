package store

import (
	"context"
	"fmt"
	"time"
)

// takeRouterCallSQL takes one call, unless the calls of the last second use up the budget. $1
// is the time between two calls, $2 the part of a second before it. The wait is 0 after a call
// was taken.
const takeRouterCallSQL = `WITH taken AS (
	INSERT INTO router_budget AS b (used_until) VALUES (clock_timestamp() + $1::interval)
	ON CONFLICT (single) DO UPDATE SET used_until = greatest(b.used_until, clock_timestamp()) + $1::interval
	WHERE b.used_until <= clock_timestamp() + $2::interval
	RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT FROM taken) THEN 0
	ELSE greatest(1, EXTRACT(epoch FROM (SELECT used_until FROM router_budget) - clock_timestamp() - $2::interval) * 1000000000) END::bigint`

// TakeRouterCall takes one of the perSecond calls a second that all processes together may
// make to the swap router, up to a second's calls at once. If none is left, it takes none and
// returns how long to wait for one; another process may be quicker.
func (s *Store) TakeRouterCall(ctx context.Context, perSecond int) (wait time.Duration, err error) {
	interval := time.Second / time.Duration(perSecond)
	if err := s.Pool.QueryRow(ctx, takeRouterCallSQL, interval, time.Second-interval).Scan(&wait); err != nil {
		return 0, unavailable(fmt.Errorf("take a call of the swap router: %w", err))
	}
	return wait, nil
}
