package filelock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

func TestALockHasOneHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Errorf("a second holder: %v, want %v", err, ErrHeld)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Wait(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait for a lock that is held: %v, want the context's error", err)
	}
	go func() {
		time.Sleep(2 * pollInterval)
		if err := Release(first); err != nil {
			t.Error(err)
		}
	}()
	second, err := Wait(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Release(second); err != nil {
		t.Error(err)
	}
	if _, err := Try(filepath.Join(t.TempDir(), "nowhere", "lock")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("a lock in a folder that is missing: %v, want another error than %v", err, ErrHeld)
	}
}
