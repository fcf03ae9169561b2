package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// idempotencyWindow is how long an Idempotency-Key is remembered.
const idempotencyWindow = 24 * time.Hour

// acceptTries bounds the races that Accept settles by looking again: each means
// that another request committed, or a failure freed nullifiers, in between.
const acceptTries = 5

// errOverlap says that a reservation or key was taken between look and insert.
var errOverlap = errors.New("another submission reserved first")

// Accept implements submission.Store. Nothing is asked of the database after
// the commit, so that what is accepted is not answered with an error.
func (s *Store) Accept(ctx context.Context, sub *submission.Submission, keyHash []byte) (*submission.Submission, error) {
	for range acceptTries {
		err := s.inTx(ctx, func(tx pgx.Tx) error { return s.insert(ctx, tx, sub, keyHash) })
		if err == nil {
			return sub, nil
		}
		if !errors.Is(err, errOverlap) {
			return nil, err
		}
		earlier, err := s.Repeat(ctx, sub, keyHash)
		if err != nil || earlier != nil {
			return earlier, err
		}
	}
	return nil, refusal.New(refusal.NullifierReserved,
		"other submissions of the same notes keep coming and going: send the request again").With("nullifier_index", 0)
}

func (s *Store) insert(ctx context.Context, tx pgx.Tx, sub *submission.Submission, keyHash []byte) error {
	hash := submission.ContentHash(sub.Call)
	var recipient []byte
	if !sub.Call.Recipient.IsZero() {
		recipient = sub.Call.Recipient.Bytes()
	}
	notes := sub.Call.Notes
	if notes == nil {
		notes = [][]byte{}
	}
	err := tx.QueryRow(ctx, `INSERT INTO submissions
		(id, pool, kind, state, content_hash, proof, proof_sign, public_inputs, recipient, notes, due_at)
		VALUES ($1, $2, $3, 'pending', $4, $5, $6, $7, $8, $9, now()) RETURNING created_at`,
		sub.ID, sub.Pool.Bytes(), sub.Kind, hash[:], sub.Call.Proof, sub.ProofSign, sub.Call.Inputs.Bytes(), recipient, notes).Scan(&sub.CreatedAt)
	if err != nil {
		return fmt.Errorf("insert submission: %w", err)
	}
	for _, n := range spends(sub) {
		tag, err := tx.Exec(ctx, `INSERT INTO reservations (pool, nullifier, submission_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			sub.Pool.Bytes(), n[:], sub.ID)
		if err != nil {
			return fmt.Errorf("reserve nullifiers: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return errOverlap
		}
	}
	if keyHash != nil {
		if err := insertKey(ctx, tx, keyHash, hash[:], sub.ID); err != nil {
			return err
		}
	}
	return s.wake(ctx, tx, wakeUp{SubmissionID: sub.ID}, 0)
}

// executor is a transaction, or the pool when one statement needs none.
type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// insertKey remembers an idempotency key; one past its window is overwritten.
// Each insert forgets two that are past it, so that they do not pile up.
func insertKey(ctx context.Context, db executor, keyHash, contentHash []byte, id uuid.UUID) error {
	tag, err := db.Exec(ctx, `INSERT INTO idempotency_keys (key_hash, content_hash, submission_id) VALUES ($1, $2, $3)
		ON CONFLICT (key_hash) DO UPDATE SET content_hash = $2, submission_id = $3, created_at = now()
		WHERE idempotency_keys.created_at < now() - $4::interval`, keyHash, contentHash, id, idempotencyWindow)
	if err != nil {
		return fmt.Errorf("remember idempotency key: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errOverlap
	}
	// Skipping locked rows keeps two requests that forget the same keys from waiting for each other.
	_, err = db.Exec(ctx, `DELETE FROM idempotency_keys WHERE key_hash IN (SELECT key_hash FROM idempotency_keys
		WHERE created_at < now() - $1::interval ORDER BY created_at LIMIT 2 FOR UPDATE SKIP LOCKED)`, idempotencyWindow)
	if err != nil {
		return fmt.Errorf("forget old idempotency keys: %w", err)
	}
	return nil
}

// spends are the nullifiers to reserve, sorted so that two submissions never
// wait for each other.
func spends(sub *submission.Submission) [][32]byte {
	var out [][32]byte
	for i, n := range sub.Call.Inputs.Nullifiers {
		if sub.Call.Inputs.HasNullifier(i) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
	return out
}

// Repeat implements submission.Store.
func (s *Store) Repeat(ctx context.Context, sub *submission.Submission, keyHash []byte) (*submission.Submission, error) {
	if keyHash != nil {
		earlier, err := s.replay(ctx, sub, keyHash)
		if err != nil || earlier != nil {
			return earlier, err
		}
	}
	hash := submission.ContentHash(sub.Call)
	rows, err := s.Pool.Query(ctx, `SELECT r.nullifier, s.id, s.content_hash FROM reservations r
		LEFT JOIN submissions s ON s.id = r.submission_id
		WHERE r.pool = $1 AND r.nullifier = ANY($2)`, sub.Pool.Bytes(), byteSlices(spends(sub)))
	if err != nil {
		return nil, unavailable(fmt.Errorf("look reservations up: %w", err))
	}
	type held struct {
		Nullifier   []byte
		ID          *uuid.UUID
		ContentHash []byte
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[held])
	if err != nil {
		return nil, unavailable(fmt.Errorf("look reservations up: %w", err))
	}
	for _, h := range found {
		if h.ID != nil && bytes.Equal(h.ContentHash, hash[:]) {
			return s.repeated(ctx, sub, keyHash, *h.ID)
		}
	}
	if len(found) > 0 {
		index := 0
		if bytes.Equal(found[0].Nullifier, sub.Call.Inputs.Nullifiers[1][:]) {
			index = 1
		}
		return nil, refusal.New(refusal.NullifierReserved,
			"nullifier %d belongs to another submission of this relay that is under way or has landed: its note cannot be spent twice; choose other notes, or wait for that submission to fail", index).
			With("nullifier_index", index)
	}
	return nil, nil //nolint:nilnil // nil is "new", as documented
}

// repeated gives the earlier submission of the same content, which an
// idempotency key of this request stands for from now on.
func (s *Store) repeated(ctx context.Context, sub *submission.Submission, keyHash []byte, id uuid.UUID) (*submission.Submission, error) {
	if keyHash != nil {
		hash := submission.ContentHash(sub.Call)
		err := insertKey(ctx, s.Pool, keyHash, hash[:], id)
		if errors.Is(err, errOverlap) { // another request came with the key just now
			return s.replay(ctx, sub, keyHash)
		}
		if err != nil {
			return nil, unavailable(err)
		}
	}
	return s.found(ctx, id)
}

// replay finds what an idempotency key stands for.
func (s *Store) replay(ctx context.Context, sub *submission.Submission, keyHash []byte) (*submission.Submission, error) {
	hash := submission.ContentHash(sub.Call)
	var id uuid.UUID
	var content []byte
	err := s.Pool.QueryRow(ctx, `SELECT submission_id, content_hash FROM idempotency_keys
		WHERE key_hash = $1 AND created_at >= now() - $2::interval`, keyHash, idempotencyWindow).Scan(&id, &content)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // nil is "new", as documented
	}
	if err != nil {
		return nil, unavailable(fmt.Errorf("look idempotency key up: %w", err))
	}
	if !bytes.Equal(content, hash[:]) {
		return nil, refusal.New(refusal.IdempotencyKeyReused,
			"this Idempotency-Key was used within 24 hours for other public inputs or another destination: send a new key with new content")
	}
	return s.found(ctx, id)
}

// found reads a submission that may have been deleted since it was looked up.
func (s *Store) found(ctx context.Context, id uuid.UUID) (*submission.Submission, error) {
	sub, err := s.Get(ctx, id)
	if r, ok := refusal.As(err); ok && r.Code == refusal.NotFound {
		return nil, nil //nolint:nilnil // nil is "new", as documented
	}
	return sub, err
}

func byteSlices(in [][32]byte) [][]byte {
	out := make([][]byte, len(in))
	for i := range in {
		out[i] = in[i][:]
	}
	return out
}

// PinnedSign implements submission.Store.
func (s *Store) PinnedSign(ctx context.Context, keyHash [32]byte) (string, error) {
	var sign string
	err := s.Pool.QueryRow(ctx, `SELECT sign FROM proof_signs WHERE key_hash = $1`, keyHash[:]).Scan(&sign)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", unavailable(fmt.Errorf("read pinned proof sign: %w", err))
	}
	return sign, nil
}

func pinSign(ctx context.Context, tx pgx.Tx, pin submission.SignPin) error {
	_, err := tx.Exec(ctx, `INSERT INTO proof_signs (key_hash, sign, signature) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		pin.KeyHash[:], pin.Sign, pin.Signature[:])
	if err != nil {
		return fmt.Errorf("pin proof sign: %w", err)
	}
	return nil
}

func signature(b []byte) *solana.Signature {
	if len(b) != len(solana.Signature{}) {
		return nil
	}
	sig := solana.Signature(b)
	return &sig
}
