package postgres

import (
	"context"
	"errors"
	"os"
	"testing"
)

func TestTheNextRunHasTheSameAddress(t *testing.T) {
	t.Setenv("TMPDIR", stateDir(t))
	first, removeFirst := startTemp(t)
	beside, removeBeside := startTemp(t)
	if first.URL("postgres") == beside.URL("postgres") {
		t.Fatalf("two servers have the address %s", first.URL("postgres"))
	}
	keep(t, first)
	removeFirst()
	if _, err := os.Stat(first.clusterDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data of the stopped server: %v, want it gone", err)
	}
	next, removeNext := startTemp(t)
	if next.URL("postgres") != first.URL("postgres") {
		t.Errorf("the next run has %s, want %s again", next.URL("postgres"), first.URL("postgres"))
	}
	query(t, next.URL("postgres"), "SELECT 'up'")
	removeNext()
	removeBeside()
}

func startTemp(t *testing.T) (*Server, func()) {
	t.Helper()
	s, remove, err := StartTemp(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return s, func() {
		if err := remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}
