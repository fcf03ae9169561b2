package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
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

// acceptSQL writes all of several submissions or, when a nullifier or an idempotency key is in use,
// nothing. Reservations and keys are inserted in sorted order, so that two statements cannot
// deadlock. The statement gives the lease only to a live worker. A dead worker's lease would have to
// be released first, and that would delay the submission. Notes and spends are passed as the text of
// arrays; see landingsSQL.
const acceptSQL = `
WITH given AS MATERIALIZED (
	SELECT id, pool, kind, content_hash, root_seq, worker, proof, proof_sign, public_inputs, recipient, notes::bytea[] AS notes, spends::bytea[] AS spends, key_hash, swap_terms
	FROM unnest($1::uuid[], $2::bytea[], $3::text[], $4::bytea[], $5::bigint[], $6::uuid[], $7::bytea[], $8::text[], $9::bytea[], $10::bytea[], $11::text[], $12::text[], $13::bytea[], $14::bytea[])
		AS g (id, pool, kind, content_hash, root_seq, worker, proof, proof_sign, public_inputs, recipient, notes, spends, key_hash, swap_terms)
	LIMIT ` + unknownToPlanner + `
), submitted AS (
	INSERT INTO submissions (id, pool, kind, content_hash, root_seq, due_at, lease_owner, state, epoch)
	SELECT g.id, g.pool, g.kind, g.content_hash, g.root_seq, now(), w.id, CASE WHEN w.id IS NULL THEN 'pending' ELSE 'processing' END, CASE WHEN w.id IS NULL THEN 0 ELSE 1 END
	FROM given g LEFT JOIN workers w ON w.id = g.worker AND w.until > now()
	RETURNING id, created_at, epoch
), requested AS (
	INSERT INTO requests (submission_id, proof, proof_sign, public_inputs, recipient, notes, spends, swap_terms)
	SELECT id, proof, proof_sign, public_inputs, recipient, notes, spends, swap_terms FROM given
), reserved AS (
	INSERT INTO reservations (pool, nullifier, submission_id)
	SELECT g.pool, n, g.id FROM given g, unnest(g.spends) AS n ORDER BY g.pool, n ON CONFLICT DO NOTHING RETURNING 1
), keyed AS (
	INSERT INTO idempotency_keys (key_hash, content_hash, submission_id)
	SELECT key_hash, content_hash, id FROM given WHERE key_hash IS NOT NULL ORDER BY key_hash ON CONFLICT DO NOTHING RETURNING 1
)
SELECT id, created_at, epoch FROM submitted
WHERE CASE WHEN (SELECT count(*) FROM reserved) = (SELECT sum(cardinality(spends)) FROM given)
		AND (SELECT count(*) FROM keyed) = (SELECT count(key_hash) FROM given)
	THEN true ELSE relaypool_overlap() END`

// acceptCall is a call of Accept.
type acceptCall struct {
	sub     *submission.Submission
	spends  [][]byte
	keyHash []byte
	worker  *uuid.UUID
}

// acceptedRow is what the database has stored of an accepted submission.
type acceptedRow struct {
	ID        uuid.UUID
	CreatedAt time.Time
	Epoch     int64
}

// Accept implements submission.Store. It makes no query after the commit, so that
// an accepted submission is never answered with an error.
func (s *Store) Accept(ctx context.Context, sub *submission.Submission, keyHash []byte, worker *uuid.UUID) (*submission.Submission, error) {
	c := acceptCall{sub: sub, spends: byteSlices(nullifiersOf(sub)), keyHash: keyHash, worker: worker}
	for range acceptTries {
		row, err := s.insert(ctx, c)
		if err == nil {
			sub.CreatedAt, sub.Epoch, sub.State = row.CreatedAt, row.Epoch, submission.Pending
			if row.Epoch > 0 {
				sub.State, sub.Owner = submission.Processing, *worker
			}
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

// insert writes the submission together with others that wait. If that writes none of them, because
// of any of them, it writes the submission alone.
func (s *Store) insert(ctx context.Context, c acceptCall) (row acceptedRow, err error) {
	// A client that leaves does not end the accept: its row may be committed, and this process has to know.
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(context.WithoutCancel(ctx), deadline)
		defer cancel()
	}
	together, err := s.accepts.Do(ctx, c)
	if err != nil {
		return row, fmt.Errorf("insert submission: %w", err)
	}
	if together != nil {
		return *together, nil
	}
	rows, err := s.insertRows(ctx, []acceptCall{c})
	if err != nil {
		return row, fmt.Errorf("insert submission: %w", err)
	}
	return rows[c.sub.ID], nil
}

// insertTogether returns the row of each submission, nil if it was not written but may be written
// alone. If one of many cannot be written, the halves are tried, so that few are written alone.
func (s *Store) insertTogether(ctx context.Context, calls []acceptCall) ([]*acceptedRow, error) {
	rows, err := s.insertRows(ctx, withoutCommonNotes(calls))
	if err != nil && (len(calls) == 1 || !undone(err)) {
		return nil, err
	}
	out := make([]*acceptedRow, len(calls))
	if err != nil && len(calls) > 2 {
		half := len(calls) / 2
		for at, part := range map[int][]acceptCall{0: calls[:half], half: calls[half:]} {
			written, err := s.insertTogether(ctx, part)
			if err == nil { // else each of them is tried alone, and gets its own error
				copy(out[at:], written)
			}
		}
		return out, nil
	}
	for i := range calls {
		if row, ok := rows[calls[i].sub.ID]; ok {
			out[i] = &row
		}
	}
	return out, nil
}

// withoutCommonNotes omits each submission that has a nullifier or the key in common with an earlier
// one.
func withoutCommonNotes(calls []acceptCall) []acceptCall {
	used := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(calls), func(c acceptCall) bool {
		var names []string
		if c.keyHash != nil {
			names = append(names, "key "+string(c.keyHash))
		}
		for _, n := range c.spends {
			names = append(names, "note "+string(c.sub.Pool[:])+string(n))
		}
		if slices.ContainsFunc(names, func(n string) bool { return used[n] }) {
			return true
		}
		for _, n := range names {
			used[n] = true
		}
		return false
	})
}

func (s *Store) insertRows(ctx context.Context, calls []acceptCall) (map[uuid.UUID]acceptedRow, error) {
	rows, err := s.Pool.Query(ctx, acceptSQL, acceptArgs(calls)...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[acceptedRow])
	if err != nil {
		return nil, err
	}
	out := make(map[uuid.UUID]acceptedRow, len(list))
	for _, row := range list {
		out[row.ID] = row
	}
	return out, nil
}

// acceptArgs are the parameters of acceptSQL.
func acceptArgs(calls []acceptCall) []any {
	n := len(calls)
	ids, pools, kinds, hashes, roots, workers := make([]uuid.UUID, n), make([][]byte, n), make([]string, n), make([][]byte, n), make([]int64, n), make([]*uuid.UUID, n)
	proofs, encodings, inputs, recipients := make([][]byte, n), make([]string, n), make([][]byte, n), make([][]byte, n)
	notes, spends, keys, terms := make([]string, n), make([]string, n), make([][]byte, n), make([][]byte, n)
	for i, c := range calls {
		call, hash := c.sub.Call, submission.ContentHash(c.sub.Call)
		ids[i], pools[i], kinds[i], hashes[i], roots[i], workers[i] = c.sub.ID, c.sub.Pool.Bytes(), string(c.sub.Kind), hash[:], int64(c.sub.RootSeq), c.worker //nolint:gosec // counts of leaves are at most 2^32
		proofs[i], encodings[i], inputs[i] = call.Proof, c.sub.ProofAEncoding, call.Inputs.Bytes()
		notes[i], spends[i], keys[i] = bytesArrayText(call.Notes), bytesArrayText(c.spends), c.keyHash
		if !call.Recipient.IsZero() {
			recipients[i] = call.Recipient.Bytes()
		}
		if call.Swap != nil {
			terms[i] = call.Swap.Bytes()
		}
	}
	return []any{ids, pools, kinds, hashes, roots, workers, proofs, encodings, inputs, recipients, notes, spends, keys, terms}
}

// nullifiersOf returns the nullifiers to reserve, sorted.
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

// bytesArrayText formats a Postgres array of bytea.
func bytesArrayText(in [][]byte) string {
	parts := make([]string, len(in))
	for i, b := range in {
		parts[i] = `"\\x` + hex.EncodeToString(b) + `"`
	}
	return "{" + strings.Join(parts, ",") + "}"
}
