package store

import (
	"context"
	"fmt"
	"time"
)

// takeRouterCallSQL takes one call from the budget of the router $3, unless the budget is used
// up. Each call moves used_until on by $1, the time between two calls at the full rate. $2 is a
// second less $1: a call is taken only while used_until is at most that far ahead, so that at
// most a second's calls are made at once. The wait is 0 after a call was taken.
const takeRouterCallSQL = `WITH taken AS (
	INSERT INTO router_budgets AS b (router, used_until) VALUES ($3, clock_timestamp() + $1::interval)
	ON CONFLICT (router) DO UPDATE SET used_until = greatest(b.used_until, clock_timestamp()) + $1::interval
	WHERE b.used_until <= clock_timestamp() + $2::interval
	RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT FROM taken) THEN 0
	ELSE greatest(1, EXTRACT(epoch FROM (SELECT used_until FROM router_budgets WHERE router = $3) - clock_timestamp() - $2::interval) * 1000000000) END::bigint`

// TakeRouterCall takes one call from the budget of the swap router of that name. All processes
// together may make perSecond calls a second to it, and up to a second's calls at once. It
// returns 0 if it took a call. Otherwise it returns how long to wait before the next try, which
// may fail too, because another process may take the call first.
func (s *Store) TakeRouterCall(ctx context.Context, router string, perSecond int) (wait time.Duration, err error) {
	interval := time.Second / time.Duration(perSecond)
	if err := s.Pool.QueryRow(ctx, takeRouterCallSQL, interval, time.Second-interval, router).Scan(&wait); err != nil {
		return 0, unavailable(fmt.Errorf("take a call of the swap router: %w", err))
	}
	return wait, nil
}
