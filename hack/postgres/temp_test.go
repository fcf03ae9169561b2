package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/filelock"
)

func TestStartTempLeavesNothing(t *testing.T) {
	t.Parallel()
	s, remove, err := StartTemp(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	query(t, s.URL("postgres"), "SELECT 'up'")
	if err := remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the stopped server: %v, want it gone", err)
	}
}

func TestRemoveAbandoned(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	now := time.Now()
	tests := map[string]struct {
		name string
		age  time.Duration
		held bool
		want bool // whether it stays
	}{
		"a killed run's folder goes":       {name: tempPrefix + "dead", age: time.Hour, want: false},
		"a living run's folder stays":      {name: tempPrefix + "held", age: time.Hour, held: true, want: true},
		"a folder not yet locked stays":    {name: tempPrefix + "young", want: true},
		"somebody else's folder stays":     {name: "other", age: time.Hour, want: true},
		"a folder of another prefix stays": {name: "relaypool-postgres-0011", age: time.Hour, want: true},
	}
	for _, tt := range tests {
		dir := filepath.Join(parent, tt.name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if tt.held {
			lock, err := lockDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = filelock.Release(lock) })
		}
		if err := os.Chtimes(dir, now.Add(-tt.age), now.Add(-tt.age)); err != nil {
			t.Fatal(err)
		}
	}
	removeAbandoned(parent, now.Add(-time.Minute))
	for name, tt := range tests {
		_, err := os.Stat(filepath.Join(parent, tt.name))
		if stays := err == nil; stays != tt.want {
			t.Errorf("%s: stays %t, want %t", name, stays, tt.want)
		}
	}
}
