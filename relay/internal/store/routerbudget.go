package store

import (
	"context"
	"fmt"
	"time"
)

// takeRouterCallSQL takes one call from the budget of the router $3, unless the budget is used
// up. Each call moves used_until forward by $1, the time between two calls at the full rate. $2
// is one second minus $1. A call is taken only if used_until is at most $2 in the future, so that
// at most one second's calls are made at once. The result is the wait in nanoseconds; 0 if a call
// was taken.
const takeRouterCallSQL = `WITH taken AS (
	INSERT INTO router_budgets AS b (router, used_until) VALUES ($3, clock_timestamp() + $1::interval)
	ON CONFLICT (router) DO UPDATE SET used_until = greatest(b.used_until, clock_timestamp()) + $1::interval
	WHERE b.used_until <= clock_timestamp() + $2::interval
	RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT FROM taken) THEN 0
	ELSE greatest(1, EXTRACT(epoch FROM (SELECT used_until FROM router_budgets WHERE router = $3) - clock_timestamp() - $2::interval) * 1000000000) END::bigint`

// TakeRouterCall takes one call from the budget of the named swap router. All processes
// together may call the router perSecond times a second, and up to perSecond times at once.
// TakeRouterCall returns 0 if it took a call. Otherwise it returns how long to wait before the
// next try. The next try may fail too, because another process may take the call first.
func (s *Store) TakeRouterCall(ctx context.Context, router string, perSecond int) (wait time.Duration, err error) {
	interval := time.Second / time.Duration(perSecond)
	if err := s.Pool.QueryRow(ctx, takeRouterCallSQL, interval, time.Second-interval, router).Scan(&wait); err != nil {
		return 0, unavailable(fmt.Errorf("take a call of the swap router: %w", err))
	}
	return wait, nil
}
