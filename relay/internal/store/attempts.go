package store

import (
	"context"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// lockedSQL locks the row of a lease by its id, before any other condition. If the same
// condition also named the state, or the owner with "=", the planner might scan a whole
// partial index for one row: it estimates these indexes as empty, as they often are. For
// the same reason other statements append an empty string to state, so that no partial
// index matches.
const lockedSQL = `locked AS MATERIALIZED (
	SELECT id, epoch, kind, state, lease_owner, tries <> 0 OR hold_reason IS NOT NULL AS waited
	FROM submissions WHERE id = $1 AND epoch = $2 AND lease_owner IS NOT DISTINCT FROM $3::uuid FOR UPDATE
)`

// recordSQL locks the row first. If another worker is claiming the row, the statement waits
// and then finds another epoch. The worker has to be alive: a process that was suspended
// must not record an attempt while the new owner may sign one. The cost of a swap's second
// leg is booked with the first leg, and not again with the second leg's own attempts.
const recordSQL = `
WITH ` + lockedSQL + `, held AS MATERIALIZED (
	SELECT l.id, l.epoch, l.kind, l.waited FROM locked l JOIN workers w ON w.id = l.lease_owner AND w.until > now()
	WHERE l.state = 'processing'
), made AS (
	INSERT INTO attempts (submission_id, epoch, signature, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height, cost, purpose, fee, booked)
	SELECT id, epoch, $4, $5, $6, $7, $8, $9, $10, $11, $12, CASE WHEN kind = 'swap_execution' THEN 0 ELSE $10::bigint + $13 END FROM held
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
	return s.writeUnderLease(ctx, "record attempt", recordSQL, l.ID, l.Epoch, l.Owner, a.Signature[:], a.Raw, a.FeePayer.Bytes(), a.Blockhash[:],
		int64(a.BlockhashSlot), int64(a.LastValidBlockHeight), int64(a.Cost), string(a.Purpose), int64(a.Fee), int64(a.SecondLegCost)) //nolint:gosec // slots, heights and lamports are below 2^63
}

// markHeldSQL locks rows in the order of ids, as all statements do.
const markHeldSQL = `
WITH held AS MATERIALIZED (
	SELECT s.id FROM submissions s JOIN unnest($1::uuid[], $2::bigint[], $3::uuid[]) AS l (id, epoch, owner) ON l.id = s.id AND l.epoch = s.epoch
	WHERE s.lease_owner IS NOT DISTINCT FROM l.owner AND s.state || '' = 'processing' ORDER BY s.id FOR UPDATE OF s
)
UPDATE submissions s SET hold_reason = $4 FROM held WHERE s.id = held.id AND s.hold_reason IS DISTINCT FROM $4`

// MarkHeld implements submission.Store.
func (s *Store) MarkHeld(ctx context.Context, leases []txmgr.Lease, reason string) error {
	ids, epochs, owners := make([]uuid.UUID, len(leases)), make([]int64, len(leases)), make([]uuid.UUID, len(leases))
	for i, l := range leases {
		ids[i], epochs[i], owners[i] = l.ID, l.Epoch, l.Owner
	}
	if _, err := s.Pool.Exec(ctx, markHeldSQL, ids, epochs, owners, reason); err != nil {
		return unavailable(fmt.Errorf("mark submissions held: %w", err))
	}
	return nil
}

// leasedSubmission locks the row of a lease, in any state.
const leasedSubmission = `
WITH ` + lockedSQL + `, held AS MATERIALIZED (
	SELECT id, kind FROM locked
)`

const markRejectedSQL = leasedSubmission + `, refused AS (
	UPDATE attempts a SET refused = true FROM held WHERE a.submission_id = held.id AND a.signature = $4 AND NOT a.refused
)
SELECT true FROM held`

// MarkAttemptRejected implements submission.Store.
func (s *Store) MarkAttemptRejected(ctx context.Context, l txmgr.Lease, sig solana.Signature) error {
	return s.writeUnderLease(ctx, "mark attempt rejected", markRejectedSQL, l.ID, l.Epoch, l.Owner, sig[:])
}

// markDeadSQL releases the lamports that the attempts booked on the spend caps. It does so
// once, because it does not change an attempt that is already dead. A swap without a live
// execution returns to the phase funded, as before the first quote.
const markDeadSQL = leasedSubmission + `, marked AS (
	UPDATE attempts a SET dead = true, paid = b.paid
	FROM held, unnest($4::bytea[], $5::bigint[]) AS b (signature, paid)
	WHERE a.submission_id = held.id AND a.signature = b.signature AND NOT a.dead
	RETURNING held.kind = 'transfer' AS transfer, b.paid - COALESCE(a.booked, a.cost) AS lamports, a.purpose
), phase_reset AS (
	UPDATE swaps w SET phase = 'funded' FROM held
	WHERE w.id = held.id AND w.phase = 'quoted' AND EXISTS (SELECT FROM marked WHERE purpose = 'execute')
		AND NOT EXISTS (SELECT FROM attempts a WHERE a.submission_id = held.id AND a.purpose = 'execute' AND NOT a.dead AND a.signature <> ALL ($4::bytea[]))
), spend_change AS (
	SELECT transfer, lamports FROM marked
), caps_updated AS (` + spendSQL + `)
SELECT true FROM held`

// MarkAttemptsDead implements submission.Store.
func (s *Store) MarkAttemptsDead(ctx context.Context, l txmgr.Lease, attempts []txmgr.DeadAttempt) error {
	if len(attempts) == 0 {
		return nil
	}
	signatures, paid := make([][]byte, len(attempts)), make([]int64, len(attempts))
	for i := range attempts {
		signatures[i], paid[i] = attempts[i].Signature[:], int64(attempts[i].Paid) //nolint:gosec // lamports are below 2^63
	}
	return s.writeUnderLease(ctx, "mark attempts dead", markDeadSQL, l.ID, l.Epoch, l.Owner, signatures, paid)
}
