package store

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// repeatsSQL finds reserved nullifiers, and keys within their window. The window is written so that
// the index of ages does not match.
const repeatsSQL = `
SELECT v.pool || v.nullifier, s.id, s.content_hash
FROM (SELECT * FROM unnest($1::bytea[], $2::bytea[]) AS g (pool, nullifier) LIMIT ` + unknownToPlanner + `) g JOIN reservations v ON v.pool = g.pool AND v.nullifier = g.nullifier
LEFT JOIN submissions s ON s.id = v.submission_id
UNION ALL
SELECT key_hash, submission_id, content_hash FROM (SELECT unnest($3::bytea[]) AS key_hash LIMIT ` + unknownToPlanner + `) g JOIN idempotency_keys USING (key_hash)
WHERE created_at + $4::interval >= now()`

// repeatCall is what FindRepeated looks for: nullifiers with their pool, and a key or nil.
type repeatCall struct {
	pool       []byte
	nullifiers [][]byte
	keyHash    []byte
}

// repeatRows are the rows that a repeatCall finds.
type repeatRows struct {
	key      *keyedSubmission
	reserved []reservation
}

// reservation is a reserved nullifier with the submission that reserved it. ID and ContentHash
// are nil if retention has deleted that submission: the reservation of a landed submission stays.
type reservation struct {
	Nullifier   []byte
	ID          *uuid.UUID
	ContentHash []byte
}

// FindRepeated implements submission.Store.
func (s *Store) FindRepeated(ctx context.Context, sub *submission.Submission, keyHash []byte) (*submission.Submission, error) {
	found, err := s.repeats.Do(ctx, repeatCall{pool: sub.Pool.Bytes(), nullifiers: byteSlices(nullifiersOf(sub)), keyHash: keyHash})
	if err != nil {
		return nil, unavailable(fmt.Errorf("find an earlier submission: %w", err))
	}
	hash := submission.ContentHash(sub.Call)
	if found.key != nil {
		earlier, err := s.findByKey(ctx, *found.key, hash)
		if err != nil || earlier != nil {
			return earlier, err
		}
	}
	for _, r := range found.reserved {
		if r.ID != nil && bytes.Equal(r.ContentHash, hash[:]) {
			earlier, err := s.getIfStored(ctx, *r.ID)
			if earlier != nil {
				// The key is not the same, so anybody may have sent the new request.
				earlier.Repeated = true
			}
			return earlier, err
		}
	}
	return nil, refuseReserved(sub, found.reserved)
}

// readKeysAndReservations reads what all the calls look for in one statement.
func (s *Store) readKeysAndReservations(ctx context.Context, calls []repeatCall) ([]repeatRows, error) {
	var pools, nullifiers, keys [][]byte
	for _, c := range calls {
		for _, n := range c.nullifiers {
			pools, nullifiers = append(pools, c.pool), append(nullifiers, n)
		}
		if c.keyHash != nil {
			keys = append(keys, c.keyHash)
		}
	}
	type row struct {
		Name        []byte // a pool and a nullifier, or a key
		ID          *uuid.UUID
		ContentHash []byte
	}
	list, err := collect(ctx, s, pgx.RowToStructByPos[row], repeatsSQL, pools, nullifiers, keys, idempotencyWindow)
	if err != nil {
		return nil, err
	}
	found := make(map[string]row, len(list))
	for _, r := range list {
		found[string(r.Name)] = r
	}
	out := make([]repeatRows, len(calls))
	for i, c := range calls {
		if r, ok := found[string(c.keyHash)]; ok {
			out[i].key = &keyedSubmission{ID: *r.ID, ContentHash: r.ContentHash}
		}
		for _, n := range c.nullifiers {
			if r, ok := found[string(c.pool)+string(n)]; ok {
				out[i].reserved = append(out[i].reserved, reservation{Nullifier: n, ID: r.ID, ContentHash: r.ContentHash})
			}
		}
	}
	return out, nil
}

// getIfStored reads a submission, or returns nil if it was deleted after it had been found.
func (s *Store) getIfStored(ctx context.Context, id uuid.UUID) (*submission.Submission, error) {
	sub, err := s.Get(ctx, id)
	if r, ok := refusal.As(err); ok && r.Code == refusal.NotFound {
		return nil, nil //nolint:nilnil // nil is "deleted", as documented
	}
	return sub, err
}
