package postgres

import (
	"context"
	"errors"
	"os"
	"testing"
)

func TestTheNextTempServerHasTheSameURL(t *testing.T) {
	t.Setenv("TMPDIR", stateDir(t))
	first, removeFirst := startTemp(t)
	second, removeSecond := startTemp(t)
	if first.URL("postgres") == second.URL("postgres") {
		t.Fatalf("two running servers have the URL %s, want different URLs", first.URL("postgres"))
	}
	writeRow(t, first)
	removeFirst()
	if _, err := os.Stat(first.clusterDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat the data of the stopped server: error %v, want that it does not exist", err)
	}
	next, removeNext := startTemp(t)
	if next.URL("postgres") != first.URL("postgres") {
		t.Errorf("the next run has the URL %s, want %s again", next.URL("postgres"), first.URL("postgres"))
	}
	query(t, next.URL("postgres"), "SELECT 'up'")
	removeNext()
	removeSecond()
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
