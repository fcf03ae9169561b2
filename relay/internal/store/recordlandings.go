package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// Landings are written in batches: pg_notify makes commits wait for each other, so each commit
// has to carry many landings. Leaf indices are passed as the text of an array, because SQL has no
// arrays of arrays of different lengths. Rows are found by id and locked in the order of ids. The
// conditions on owner and state are written so that no partial index matches; see lockedSQL.
//
// The caps' buckets are updated after the proof A encoding is pinned, because all statements lock
// buckets last. A pin that is stored already is not written again: the conflict would lock its
// row, and all landings would wait for that lock.
const (
	landingsSQL = `
WITH landing AS MATERIALIZED (
	SELECT id, epoch, owner, signature, slot, leaves::bigint[] AS leaves, root, phase, timeout, returned
	FROM unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::bytea[], $5::bigint[], $6::text[], $7::bytea[], $8::text[], $9::bigint[], $10::bigint[])
		AS l (id, epoch, owner, signature, slot, leaves, root, phase, timeout, returned)
	LIMIT ` + unknownToPlanner + `
), held AS MATERIALIZED (
	SELECT l.* FROM submissions s JOIN landing l ON l.id = s.id AND l.epoch = s.epoch
	WHERE s.lease_owner IS NOT DISTINCT FROM l.owner AND s.state || '' = `

	completeSQL = landingsSQL + `'processing' ORDER BY s.id FOR UPDATE OF s
), done AS (
	UPDATE submissions s SET state = 'completed', signature = l.signature, slot = l.slot, leaf_indices = l.leaves, root = l.root,
		rolled_back = false, tries = 0, hold_reason = NULL, due_at = now(), completed_at = now()
	FROM held l WHERE s.id = l.id
	RETURNING s.id, s.epoch, l.owner, s.pool, s.kind, s.content_hash, s.parent, l.phase, l.timeout
), phase_set AS (
	UPDATE swaps w SET phase = d.phase FROM done d WHERE w.id = d.id AND d.phase <> ''
), ` + insertSecondLegSQL + `
SELECT id, epoch, owner, ` + notifyDone + ` FROM done`

	finalizeSQL = landingsSQL + `'completed' ORDER BY s.id FOR UPDATE OF s
), done AS (
	UPDATE submissions s SET finalized = true, due_at = NULL, lease_owner = NULL, tries = 0, hold_reason = NULL, slot = l.slot,
		leaf_indices = CASE WHEN cardinality(l.leaves) > 0 THEN l.leaves ELSE s.leaf_indices END, root = COALESCE(s.root, l.root)
	FROM held l WHERE s.id = l.id
	RETURNING s.id, s.epoch, l.owner, s.signature, l.returned, s.parent, s.kind
), pinned AS (
	INSERT INTO proof_signs (key_hash, sign, signature)
	SELECT p.key_hash, p.sign, p.signature FROM (
		SELECT DISTINCT ON (t.key_hash) t.* FROM unnest($11::bytea[], $12::text[], $13::bytea[]) WITH ORDINALITY AS t (key_hash, sign, signature, nth)
		WHERE t.signature IN (SELECT signature FROM done) ORDER BY t.key_hash, t.nth
	) p WHERE NOT EXISTS (SELECT FROM proof_signs q WHERE q.key_hash = p.key_hash AND q.sign = p.sign)
	ON CONFLICT (key_hash) DO UPDATE SET sign = EXCLUDED.sign, signature = EXCLUDED.signature, created_at = now()
	WHERE proof_signs.sign <> EXCLUDED.sign RETURNING 1
), ended AS (
	UPDATE swaps w SET ended = true FROM done d WHERE w.id = d.id
), ` + replaceBookingSQL + `, caps_updated AS (` + spendSQL + `)
SELECT id, epoch, owner, '' FROM done`

	// notifyDone notifies those who wait for a row's submission or for its parent: clients know a
	// second leg only by the parent's id.
	notifyDone = `pg_notify(` + doneChannel + `, id::text)::text || CASE WHEN parent IS NOT NULL THEN pg_notify(` + doneChannel + `, parent::text)::text ELSE '' END`
)

// Complete implements submission.Store.
func (s *Store) Complete(ctx context.Context, l []submission.Landing) (lost []txmgr.Lease, err error) {
	return s.writeOutcomes(ctx, "complete submissions", completeSQL, l)
}

// Finalize implements submission.Store. A pin is stored only if the landing that proves it is
// written. It replaces a stored pin of the other encoding.
func (s *Store) Finalize(ctx context.Context, l []submission.Landing, pins []submission.ProofAPin) (lost []txmgr.Lease, err error) {
	keys, encodings, signatures := make([][]byte, len(pins)), make([]string, len(pins)), make([][]byte, len(pins))
	for i := range pins {
		keys[i], encodings[i], signatures[i] = pins[i].KeyHash[:], pins[i].Encoding, pins[i].Signature[:]
	}
	return s.writeOutcomes(ctx, "finalize submissions", finalizeSQL, l, keys, encodings, signatures)
}

// writeOutcomes runs completeSQL or finalizeSQL, and returns the leases that turned out to be
// lost.
func (s *Store) writeOutcomes(ctx context.Context, what, sql string, l []submission.Landing, extraArgs ...any) ([]txmgr.Lease, error) {
	if len(l) == 0 {
		return nil, nil
	}
	n := len(l)
	ids, epochs, owners, slots, leaves := make([]uuid.UUID, n), make([]int64, n), make([]uuid.UUID, n), make([]int64, n), make([]string, n)
	signatures, roots := make([][]byte, n), make([][]byte, n)
	phases, timeouts, returned := make([]string, n), make([]int64, n), make([]int64, n)
	for i := range l {
		ids[i], epochs[i], owners[i], slots[i], leaves[i] = l[i].ID, l[i].Epoch, l[i].Owner, int64(l[i].Slot), arrayText(l[i].LeafIndices) //nolint:gosec // slots are below 2^63
		signatures[i], phases[i] = l[i].Signature[:], string(l[i].Phase)
		timeouts[i], returned[i] = int64(l[i].Timeout), int64(l[i].Returned) //nolint:gosec // slots and lamports are below 2^63
		if l[i].Root != nil {
			roots[i] = l[i].Root[:]
		}
	}
	type writtenRow struct {
		txmgr.Lease
		NotifyResult string
	}
	rows, err := collect(ctx, s, pgx.RowToStructByPos[writtenRow], sql, append([]any{ids, epochs, owners, signatures, slots, leaves, roots, phases, timeouts, returned}, extraArgs...)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	wrote := make(map[txmgr.Lease]bool, len(rows))
	for _, w := range rows {
		wrote[w.Lease] = true
	}
	var lost []txmgr.Lease
	for i := range l {
		if !wrote[l[i].Lease] {
			lost = append(lost, l[i].Lease)
		}
	}
	return lost, nil
}

// arrayText formats a Postgres array of integers.
func arrayText(in []uint64) string {
	parts := make([]string, len(in))
	for i, x := range in {
		parts[i] = strconv.FormatUint(x, 10)
	}
	return "{" + strings.Join(parts, ",") + "}"
}
