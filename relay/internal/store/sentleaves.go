package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// sentLeavesSQL is limited because its caller looks at a few of them, and tells a client 256 leaves at most.
const sentLeavesSQL = `SELECT public_inputs FROM submissions s JOIN requests r ON r.submission_id = s.id
	WHERE pool = $1 AND state IN ('pending', 'processing') AND EXISTS (SELECT FROM attempts a WHERE a.submission_id = s.id AND NOT a.dead)
	ORDER BY root_seq, job_id LIMIT 256`

// SentLeaves implements commitments.Store.
func (c *Commitments) SentLeaves(ctx context.Context) ([][][32]byte, error) {
	sent, err := collect(ctx, c.store, func(row pgx.CollectableRow) (leaves [][32]byte, err error) {
		var raw []byte
		if err := row.Scan(&raw); err != nil {
			return nil, err
		}
		in, err := shieldpool.ParsePublicInputs(raw)
		if err != nil {
			return nil, err
		}
		return in.Leaves(), nil
	}, sentLeavesSQL, c.pool.Bytes())
	if err != nil {
		return nil, fmt.Errorf("list the leaves of what was sent: %w", err)
	}
	return sent, nil
}
