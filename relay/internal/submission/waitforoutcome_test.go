package submission

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/uuid"
)

// finished is a database in which everything is done.
type finished struct{ Store }

func (finished) Get(_ context.Context, id uuid.UUID) (*Submission, error) {
	return &Submission{ID: id, State: Completed}, nil
}

// TestCancelledWaitersAreRemoved: otherwise the reader would count and notify past callers for ever.
func TestCancelledWaitersAreRemoved(t *testing.T) {
	t.Parallel()
	d, err := NewReader(finished{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := d.Wait(gone, uuid.New()); err != nil {
		t.Fatal(err)
	}
	if n := d.Waiting(); n != 0 || len(d.waiting) != 0 {
		t.Errorf("%d wait for %d submissions after the only one has gone, want none", n, len(d.waiting))
	}
}
