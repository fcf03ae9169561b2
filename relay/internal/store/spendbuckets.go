package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/spendcap"
)

// spendSQL adds the spending of a statement to the caps' buckets. It has no parameters: it reads
// rows (transfer boolean, lamports bigint) of the WITH query spend_change. It commits with the
// surrounding statement. Negative lamports release a booking. The shard is random, so that
// commits seldom wait for each other. The rows of one statement are locked in the order of
// transfer, so that statements cannot deadlock.
const spendSQL = `INSERT INTO spend_buckets (bucket, shard, transfer, lamports)
	SELECT date_bin('5 minutes', now(), 'epoch'), floor(random() * 32)::smallint, transfer, sum(lamports)
	FROM spend_change GROUP BY transfer HAVING sum(lamports) <> 0 ORDER BY transfer
	ON CONFLICT (bucket, shard, transfer) DO UPDATE SET lamports = spend_buckets.lamports + EXCLUDED.lamports`

// SpendBuckets implements spendcap.BucketStore.
func (s *Store) SpendBuckets(ctx context.Context, age time.Duration) ([]spendcap.Bucket, error) {
	rows, err := s.Pool.Query(ctx, `SELECT (EXTRACT(epoch FROM now() - bucket) * 1000000000)::bigint, transfer, sum(lamports)::bigint
		FROM spend_buckets WHERE bucket > now() - $1::interval GROUP BY bucket, transfer`, age)
	if err != nil {
		return nil, unavailable(fmt.Errorf("read spend buckets: %w", err))
	}
	buckets, err := pgx.CollectRows(rows, pgx.RowToStructByPos[spendcap.Bucket])
	if err != nil {
		return nil, unavailable(fmt.Errorf("read spend buckets: %w", err))
	}
	return buckets, nil
}

// DeleteSpendBefore deletes the buckets that started before a time, and returns the number
// of rows. It keeps all buckets that a cap still needs, even if they started before that time.
func (s *Store) DeleteSpendBefore(ctx context.Context, before time.Time) (int64, error) {
	tag, err := s.Pool.Exec(ctx, `DELETE FROM spend_buckets WHERE bucket < least($1, now() - $2::interval)`, before, spendcap.BucketsKept)
	if err != nil {
		return 0, unavailable(fmt.Errorf("delete old spend buckets: %w", err))
	}
	return tag.RowsAffected(), nil
}
