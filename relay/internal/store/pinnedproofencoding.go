package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// PinnedProofA implements submission.Store.
func (s *Store) PinnedProofA(ctx context.Context, keyHash [32]byte) (string, error) {
	var encoding string
	err := s.Pool.QueryRow(ctx, `SELECT sign FROM proof_signs WHERE key_hash = $1`, keyHash[:]).Scan(&encoding)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", unavailable(fmt.Errorf("read pinned proof A encoding: %w", err))
	}
	return encoding, nil
}

// ProofAPin is the pinned encoding of proof A, with the transaction that proved it and the
// time at which it was pinned.
type ProofAPin struct {
	submission.ProofAPin
	Since time.Time
}

// ProofAPins lists the pinned encodings of all verifying keys.
func (s *Store) ProofAPins(ctx context.Context) ([]ProofAPin, error) {
	type row struct {
		Key, Signature []byte
		Encoding       string
		Since          time.Time
	}
	rows, err := collect(ctx, s, pgx.RowToStructByPos[row], `SELECT key_hash, signature, sign, created_at FROM proof_signs ORDER BY created_at, key_hash`)
	if err != nil {
		return nil, fmt.Errorf("list pinned proof A encodings: %w", err)
	}
	pins := make([]ProofAPin, len(rows))
	for i, r := range rows {
		pins[i] = ProofAPin{ProofAPin: submission.ProofAPin{Encoding: r.Encoding}, Since: r.Since}
		copy(pins[i].KeyHash[:], r.Key)
		copy(pins[i].Signature[:], r.Signature)
	}
	return pins, nil
}

// ForgetProofAPins deletes all pins. The next finalized submission pins an encoding again.
func (s *Store) ForgetProofAPins(ctx context.Context) (n int64, err error) {
	tag, err := s.Pool.Exec(ctx, `DELETE FROM proof_signs`)
	if err != nil {
		return 0, unavailable(fmt.Errorf("delete pinned proof A encodings: %w", err))
	}
	return tag.RowsAffected(), nil
}
