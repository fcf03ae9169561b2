package postgres

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestTheNextRunHasTheSameAddress(t *testing.T) {
	t.Parallel()
	folder := short(t)
	one, other := startTemp(t), startTemp(t)
	slot := func(s *Server) (string, func() error) {
		t.Helper()
		address, release, err := s.Slot(t.Context(), folder, "postgres")
		if err != nil {
			t.Fatal(err)
		}
		return address, release
	}
	free := func(release func() error) {
		t.Helper()
		if err := release(); err != nil {
			t.Fatal(err)
		}
	}
	first, release := slot(one)
	beside, releaseBeside := slot(other)
	if first == beside {
		t.Fatalf("two living runs have the same address %s", first)
	}
	sameServer(t, first, one.URL("postgres"))
	sameServer(t, beside, other.URL("postgres"))
	free(release)
	if _, err := pgx.Connect(t.Context(), first); err == nil {
		t.Error("an address that was given back still leads to the server")
	}
	again, release := slot(other)
	if again != first {
		t.Errorf("the next run has %s, want %s again", again, first)
	}
	sameServer(t, again, other.URL("postgres"))
	free(release)
	free(releaseBeside)
}

// A run that is killed gives nothing back, but the kernel frees its lock.
func TestAKilledRunsAddressIsTakenOver(t *testing.T) {
	t.Parallel()
	folder := short(t)
	s := startTemp(t)
	version, err := s.version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(folder, "postgres-"+version+"-0")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nonexistent", filepath.Join(left, "socket")); err != nil {
		t.Fatal(err)
	}
	address, release, err := s.Slot(t.Context(), folder, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	if want := addressOf(filepath.Join(left, "socket"), "postgres"); address != want {
		t.Errorf("got %s, want %s", address, want)
	}
	sameServer(t, address, s.URL("postgres"))
	if err := release(); err != nil {
		t.Error(err)
	}
}

func TestAFolderTooDeepForASocketHasNoSlots(t *testing.T) {
	t.Parallel()
	s := startTemp(t)
	address, release, err := s.Slot(t.Context(), filepath.Join(t.TempDir(), strings.Repeat("d", maxSocketPath)), "postgres")
	if err != nil || address != s.URL("postgres") {
		t.Errorf("got %s, %v, want the server's own address %s", address, err, s.URL("postgres"))
	}
	if err := errors.Join(release(), release()); err != nil {
		t.Error(err)
	}
}

// short is a folder whose path leaves room for a socket, as a test's own may not.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "slots")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func startTemp(t *testing.T) *Server {
	t.Helper()
	s, remove, err := StartTemp(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sameServer compares two addresses by the first process of the server behind them.
func sameServer(t *testing.T, address, other string) {
	t.Helper()
	const started = "SELECT pg_postmaster_start_time()::text"
	if got, want := query(t, address, started), query(t, other, started); got != want {
		t.Errorf("%s leads to the server started at %s, want %s", address, got, want)
	}
}
