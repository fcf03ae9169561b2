package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// LaneFigures say how the attempts of one lane and one price band fared.
type LaneFigures struct {
	// Lane is the lane's name, or rpc for attempts without a lane.
	Lane string `json:"lane"`
	// Paid is the lower end of the band: what an attempt paid beyond the signature's fee, in
	// lamports, rounded down to a power of ten; 0 for nothing.
	Paid uint64 `json:"paid_from"`
	// Landed and Expired count attempts. Those that failed on the chain, and those whose fate is
	// open, are in neither.
	Landed  uint64 `json:"landed"`
	Expired uint64 `json:"expired"`
	// P50 and P99 are percentiles of the slots from the reading of an attempt's blockhash, at most
	// a second before its first send, to its landing; 0 if none landed.
	P50 float64 `json:"slots_p50"`
	P99 float64 `json:"slots_p99"`
	// Lamports is the average fee and tip of a landing; 0 if none landed.
	Lamports float64 `json:"lamports_per_landing"`
}

const lanesSQL = `
WITH fates AS (
	SELECT COALESCE(NULLIF(a.lane, ''), 'rpc') AS lane, a.fee + a.tip AS lamports, GREATEST(s.slot - a.blockhash_slot, 0) AS slots,
		CASE WHEN a.fee + a.tip > $2 THEN power(10, floor(log(a.fee + a.tip - $2)))::bigint ELSE 0 END AS band, s.signature = a.signature AS landed
	FROM attempts a JOIN submissions s ON s.id = a.submission_id
	WHERE a.created_at >= $1 AND (s.signature = a.signature AND NOT a.dead OR a.dead AND a.paid = 0 AND NOT a.refused)
)
SELECT lane, band, count(*) FILTER (WHERE landed), count(*) FILTER (WHERE NOT COALESCE(landed, false)),
	COALESCE(percentile_cont(0.5) WITHIN GROUP (ORDER BY slots) FILTER (WHERE landed), 0),
	COALESCE(percentile_cont(0.99) WITHIN GROUP (ORDER BY slots) FILTER (WHERE landed), 0),
	COALESCE(avg(lamports) FILTER (WHERE landed), 0)::float8
FROM fates GROUP BY lane, band ORDER BY lane, band`

// Lanes returns the figures of the attempts that were signed since a time and are still stored,
// ordered by lane and price band.
func (s *Store) Lanes(ctx context.Context, since time.Time) ([]LaneFigures, error) {
	figures, err := collect(ctx, s, pgx.RowToStructByPos[LaneFigures], lanesSQL, since, int64(shieldpool.SignatureFee))
	if err != nil {
		return nil, fmt.Errorf("read the figures of lanes: %w", err)
	}
	return figures, nil
}
