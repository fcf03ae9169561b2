package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// recordSQL locks the rows first, in the order of ids. If another worker is claiming a row, the
// statement waits, and then writes nothing for it because the epoch has changed. It also writes
// nothing if the worker's heartbeat has expired: a process that was suspended must not record an
// attempt, because a new owner may sign one at the same time. Rows are found as in landingsSQL.
const recordSQL = `
WITH given AS MATERIALIZED (
	SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::text[], $15::bigint[])
		AS g (id, epoch, owner, signature, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height, cost, purpose, fee, second_leg_cost, lane, tip)
	LIMIT ` + unknownToPlanner + `
), locked AS MATERIALIZED (
	SELECT g.*, s.kind, s.state, s.tries <> 0 OR s.hold_reason IS NOT NULL AS waited
	FROM submissions s JOIN given g ON g.id = s.id AND g.epoch = s.epoch
	WHERE s.lease_owner IS NOT DISTINCT FROM g.owner ORDER BY s.id FOR UPDATE OF s
), held AS MATERIALIZED (
	SELECT l.* FROM locked l JOIN workers w ON w.id = l.owner AND w.until > now() WHERE l.state = 'processing'
), made AS (
	INSERT INTO attempts (submission_id, epoch, signature, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height, cost, purpose, fee, booked, lane, tip)
	SELECT id, epoch, signature, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height, cost, purpose, fee, ` + bookBothLegsSQL + `, lane, tip FROM held
	RETURNING signature, booked
), progress AS (
	UPDATE submissions s SET tries = 0, hold_reason = NULL FROM held WHERE s.id = held.id AND held.waited
), quoted AS (
	UPDATE swaps w SET phase = 'quoted' FROM held WHERE w.id = held.id AND held.purpose = 'execute' AND w.phase <> 'quoted'
), spend_change AS (
	SELECT kind = 'transfer' AS transfer, booked AS lamports FROM held JOIN made USING (signature)
), spent AS (` + spendSQL + `)
SELECT id, epoch, owner FROM held`

// recordCall is a call of RecordAttempt.
type recordCall struct {
	lease   txmgr.Lease
	attempt txmgr.Attempt
}

// recordResult is what became of an attempt in a batch.
type recordResult int

const (
	recorded recordResult = iota
	leaseLost
	recordAlone // nothing of the batch was written
)

// RecordAttempt implements submission.Store. Attempts that wait at the same time are written
// together, each under its own lease. If that writes none of them, because of any of them, the
// attempt is written alone.
func (s *Store) RecordAttempt(ctx context.Context, l txmgr.Lease, a txmgr.Attempt) error {
	c := recordCall{lease: l, attempt: a}
	result, err := s.attempts.Do(ctx, c)
	if err == nil && result == recordAlone {
		var results []recordResult
		if results, err = s.recordTogether(ctx, []recordCall{c}); err == nil {
			result = results[0]
		}
	}
	if err != nil {
		return unavailable(fmt.Errorf("record attempt: %w", err))
	}
	if result == leaseLost {
		return txmgr.ErrLeaseLost
	}
	return nil
}

func (s *Store) recordTogether(ctx context.Context, calls []recordCall) ([]recordResult, error) {
	out := make([]recordResult, len(calls))
	held, err := collect(ctx, s, pgx.RowToStructByPos[txmgr.Lease], recordSQL, recordArgs(calls)...)
	if err != nil && (len(calls) == 1 || !undone(err)) {
		return nil, err
	}
	// The signature does not tell whose attempt was written: under a lost lease and under the one after it
	// a process may sign the same bytes.
	for i := range calls {
		switch {
		case err != nil:
			out[i] = recordAlone
		case !slices.Contains(held, calls[i].lease):
			out[i] = leaseLost
		}
	}
	return out, nil
}

// recordArgs are the parameters of recordSQL.
func recordArgs(calls []recordCall) []any {
	n := len(calls)
	ids, epochs, owners := make([]uuid.UUID, n), make([]int64, n), make([]uuid.UUID, n)
	signatures, raws, payers, blockhashes := make([][]byte, n), make([][]byte, n), make([][]byte, n), make([][]byte, n)
	slots, heights, costs, fees, secondLegs, tips := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	purposes, lanes := make([]string, n), make([]string, n)
	for i := range calls {
		l, a := calls[i].lease, &calls[i].attempt
		ids[i], epochs[i], owners[i] = l.ID, l.Epoch, l.Owner
		signatures[i], raws[i], payers[i], blockhashes[i] = a.Signature[:], a.Raw, a.FeePayer.Bytes(), a.Blockhash[:]
		slots[i], heights[i], costs[i] = int64(a.BlockhashSlot), int64(a.LastValidBlockHeight), int64(a.Cost) //nolint:gosec // slots, heights and lamports are below 2^63
		fees[i], secondLegs[i], tips[i] = int64(a.Fee), int64(a.SecondLegCost), int64(a.Tip)                  //nolint:gosec // as above
		purposes[i], lanes[i] = string(a.Purpose), a.Lane
	}
	return []any{ids, epochs, owners, signatures, raws, payers, blockhashes, slots, heights, costs, purposes, fees, secondLegs, lanes, tips}
}
