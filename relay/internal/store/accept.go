package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// acceptTries is the maximum number of tries of Accept. A try fails if a nullifier or the key is
// in use. If FindRepeated then finds no earlier submission, Accept tries again: the earlier
// submission has failed and released its nullifiers, or the key has expired.
const acceptTries = 5

// overlapState is the SQLSTATE of the error that the SQL function relaypool_overlap raises.
const overlapState = "RP409"

// acceptSQL writes all of a submission or, when a nullifier or the idempotency key is in use,
// nothing. Reservations are inserted in the order of $12, which is sorted, so that two submissions
// cannot deadlock. The statement gives the lease only to a live worker. A dead worker's lease would
// have to be released first, and that would delay the submission.
const acceptSQL = `
WITH submitted AS (
	INSERT INTO submissions (id, pool, kind, content_hash, root_seq, due_at, lease_owner, state, epoch)
	SELECT $1, $2, $3, $4, $5, now(), w.id, CASE WHEN w.id IS NULL THEN 'pending' ELSE 'processing' END, CASE WHEN w.id IS NULL THEN 0 ELSE 1 END
	FROM (SELECT) AS one LEFT JOIN workers w ON w.id = $6::uuid AND w.until > now()
	RETURNING created_at, epoch
), requested AS (
	INSERT INTO requests (submission_id, proof, proof_sign, public_inputs, recipient, notes, spends, swap_terms)
	VALUES ($1, $7, $8, $9, $10, $11, $12::bytea[], $14)
), reserved AS (
	INSERT INTO reservations (pool, nullifier, submission_id)
	SELECT $2, n, $1 FROM unnest($12::bytea[]) AS n ON CONFLICT DO NOTHING RETURNING 1
), keyed AS (
	INSERT INTO idempotency_keys (key_hash, content_hash, submission_id)
	SELECT $13::bytea, $4, $1 WHERE $13::bytea IS NOT NULL ON CONFLICT DO NOTHING RETURNING 1
)
SELECT created_at, epoch FROM submitted
WHERE CASE WHEN (SELECT count(*) FROM reserved) = cardinality($12::bytea[])
		AND (SELECT count(*) FROM keyed) = num_nonnulls($13::bytea)
	THEN true ELSE relaypool_overlap() END`

// Accept implements submission.Store. It makes no query after the commit, so that
// an accepted submission is never answered with an error.
func (s *Store) Accept(ctx context.Context, sub *submission.Submission, keyHash []byte, worker *uuid.UUID) (*submission.Submission, error) {
	for range acceptTries {
		err := s.insert(ctx, sub, keyHash, worker)
		if err == nil {
			return sub, nil
		}
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != overlapState {
			return nil, unavailable(err)
		}
		earlier, err := s.FindRepeated(ctx, sub, keyHash)
		if err != nil || earlier != nil {
			return earlier, err
		}
		if err := s.deleteStaleKey(ctx, keyHash); err != nil {
			return nil, err
		}
	}
	return nil, refusal.New(refusal.NullifierReserved,
		"other submissions keep reserving and releasing the same notes: send the request again").With("nullifier_index", 0)
}

// insert writes the submission and, after the commit, sets the stored values in sub.
func (s *Store) insert(ctx context.Context, sub *submission.Submission, keyHash []byte, worker *uuid.UUID) error {
	hash := submission.ContentHash(sub.Call)
	var recipient, terms []byte
	if !sub.Call.Recipient.IsZero() {
		recipient = sub.Call.Recipient.Bytes()
	}
	if sub.Call.Swap != nil {
		terms = sub.Call.Swap.Bytes()
	}
	notes := sub.Call.Notes
	if notes == nil {
		notes = [][]byte{}
	}
	var at time.Time
	var epoch int64
	err := s.Pool.QueryRow(ctx, acceptSQL, sub.ID, sub.Pool.Bytes(), sub.Kind, hash[:], int64(sub.RootSeq), worker, //nolint:gosec // counts of leaves are at most 2^32
		sub.Call.Proof, sub.ProofAEncoding, sub.Call.Inputs.Bytes(), recipient, notes, byteSlices(nullifiersOf(sub)), keyHash, terms).Scan(&at, &epoch)
	if err != nil {
		return fmt.Errorf("insert submission: %w", err)
	}
	sub.CreatedAt, sub.Epoch, sub.State = at, epoch, submission.Pending
	if epoch > 0 {
		sub.State, sub.Owner = submission.Processing, *worker
	}
	return nil
}

// nullifiersOf returns the nullifiers to reserve, sorted so that two submissions
// cannot deadlock.
func nullifiersOf(sub *submission.Submission) [][32]byte {
	var out [][32]byte
	for i, n := range sub.Call.Inputs.Nullifiers {
		if sub.Call.Inputs.HasNullifier(i) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
	return out
}

func byteSlices(in [][32]byte) [][]byte {
	out := make([][]byte, len(in))
	for i := range in {
		out[i] = in[i][:]
	}
	return out
}
