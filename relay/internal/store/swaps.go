package store

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// errNoSwaps says that this schema has no settlements yet.
var errNoSwaps = errors.New("this release's schema has no settlements")

// ClaimSettlements implements submission.Store.
func (s *Store) ClaimSettlements(context.Context, uuid.UUID, int) ([]*submission.Claimed, error) {
	return nil, errNoSwaps
}

// NoteSwap implements submission.Store.
func (s *Store) NoteSwap(context.Context, submission.Lease, submission.Phase, uint64) error {
	return errNoSwaps
}
