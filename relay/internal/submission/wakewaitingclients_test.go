package submission

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/uuid"
)

// completedStore is a database in which every submission is completed.
type completedStore struct{ Store }

func (completedStore) Get(_ context.Context, id uuid.UUID) (*Submission, error) {
	return &Submission{ID: id, State: Completed}, nil
}

type noIndex struct{ LeafIndex }

// TestCancelledWaitersAreRemoved: otherwise the reader would count and notify former callers for ever.
func TestCancelledWaitersAreRemoved(t *testing.T) {
	t.Parallel()
	d, err := NewReader(completedStore{}, noIndex{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Wait(cancelled, uuid.New()); err != nil {
		t.Fatal(err)
	}
	if n := d.Waiting(); n != 0 || len(d.waiting) != 0 {
		t.Errorf("%d callers wait for %d submissions after the only caller was cancelled, want none", n, len(d.waiting))
	}
}
