package store

import (
	"context"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// recordSQL locks the row first. If another worker is claiming the row, the statement waits, and
// then writes nothing because the epoch has changed. It also writes nothing if the worker's
// heartbeat has expired: a process that was suspended must not record an attempt, because a new
// owner may sign one at the same time.
const recordSQL = `
WITH ` + lockedSQL + `, held AS MATERIALIZED (
	SELECT l.id, l.epoch, l.kind, l.waited FROM locked l JOIN workers w ON w.id = l.lease_owner AND w.until > now()
	WHERE l.state = 'processing'
), made AS (
	INSERT INTO attempts (submission_id, epoch, signature, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height, cost, purpose, fee, booked, lane, tip)
	SELECT id, epoch, $4, $5, $6, $7, $8, $9, $10, $11, $12, ` + bookBothLegsSQL + `, $14, $15 FROM held
	RETURNING booked
), progress AS (
	UPDATE submissions s SET tries = 0, hold_reason = NULL FROM held WHERE s.id = held.id AND held.waited
), quoted AS (
	UPDATE swaps w SET phase = 'quoted' FROM held WHERE w.id = held.id AND $11 = 'execute' AND w.phase <> 'quoted'
), spend_change AS (
	SELECT kind = 'transfer' AS transfer, booked AS lamports FROM held, made
), spent AS (` + spendSQL + `)
SELECT true FROM held`

// RecordAttempt implements submission.Store.
func (s *Store) RecordAttempt(ctx context.Context, l txmgr.Lease, a txmgr.Attempt) error {
	return s.queryUnderLease(ctx, "record attempt", recordSQL, l.ID, l.Epoch, l.Owner, a.Signature[:], a.Raw, a.FeePayer.Bytes(), a.Blockhash[:],
		int64(a.BlockhashSlot), int64(a.LastValidBlockHeight), int64(a.Cost), string(a.Purpose), int64(a.Fee), int64(a.SecondLegCost), a.Lane, int64(a.Tip)) //nolint:gosec // slots, heights and lamports are below 2^63
}
