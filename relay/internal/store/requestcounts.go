package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/ratelimit"
)

// addRequestsSQL adds $3 to the counts of the clients $2 in the window $1. Rows are locked in the
// order of client, so that statements cannot deadlock.
const addRequestsSQL = `INSERT INTO request_counts AS c (started, client, requests)
	SELECT $1, client, requests FROM unnest($2::bytea[], $3::int[]) AS n (client, requests) ORDER BY client
	ON CONFLICT (started, client) DO UPDATE SET requests = c.requests + EXCLUDED.requests
	RETURNING client, requests`

// AddRequests implements ratelimit.Store.
func (s *Store) AddRequests(ctx context.Context, window time.Time, requests map[ratelimit.Client]int) (map[ratelimit.Client]int, error) {
	clients, numbers := make([][]byte, 0, len(requests)), make([]int, 0, len(requests))
	for client, n := range requests {
		clients, numbers = append(clients, client[:]), append(numbers, n)
	}
	rows, err := s.Pool.Query(ctx, addRequestsSQL, window, clients, numbers)
	if err != nil {
		return nil, unavailable(fmt.Errorf("share the counts of requests: %w", err))
	}
	counts := make(map[ratelimit.Client]int, len(requests))
	var client []byte
	var n int
	_, err = pgx.ForEachRow(rows, []any{&client, &n}, func() error {
		counts[ratelimit.Client(client)] = n
		return nil
	})
	if err != nil {
		return nil, unavailable(fmt.Errorf("share the counts of requests: %w", err))
	}
	return counts, nil
}

// DeleteRequestCountsBefore deletes the counts of windows that started before a time, and returns
// the number of rows.
func (s *Store) DeleteRequestCountsBefore(ctx context.Context, before time.Time) (int64, error) {
	tag, err := s.Pool.Exec(ctx, `DELETE FROM request_counts WHERE started < $1`, before)
	if err != nil {
		return 0, unavailable(fmt.Errorf("delete old counts of requests: %w", err))
	}
	return tag.RowsAffected(), nil
}
