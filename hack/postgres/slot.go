package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/filelock"
)

// maxSlots is how many runs of tests may be under way at once, each with an
// address that stays the same from run to run.
const maxSlots = 16

// Slot gives the server an address that the next run's server has again: `go test`
// repeats a test whose environment changed, and the address is in it. It is a link
// in the folder to the server's socket, named by the server's version, with which
// results may change, and by the first number that no living run has. The returned
// function gives the number back.
//
// Where the folder's path is too long for a socket, or all numbers are taken, the
// address is URL's, which is right and no run's again.
func (s *Server) Slot(ctx context.Context, folder, database string) (address string, release func() error, err error) {
	version, err := s.version(ctx)
	if err != nil {
		return "", nil, fmt.Errorf("find the server's version: %w", err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", nil, fmt.Errorf("make the folder of addresses: %w", err)
	}
	for n := range maxSlots {
		slot := filepath.Join(folder, "postgres-"+version+"-"+strconv.Itoa(n))
		link := filepath.Join(slot, "socket")
		if len(filepath.Join(link, ".s.PGSQL."+strconv.Itoa(port))) > maxSocketPath {
			break
		}
		if err := os.MkdirAll(slot, 0o700); err != nil {
			return "", nil, fmt.Errorf("make the folder of an address: %w", err)
		}
		lock, err := lockDir(slot)
		if errors.Is(err, filelock.ErrHeld) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		if err := relink(s.socketDir, link); err != nil {
			return "", nil, errors.Join(fmt.Errorf("link the server's socket: %w", err), filelock.Release(lock))
		}
		return addressOf(link, database), func() error { return errors.Join(os.Remove(link), filelock.Release(lock)) }, nil
	}
	return s.URL(database), func() error { return nil }, nil
}

// relink is for whoever holds the slot: a run that was killed left its link.
func relink(target, link string) error {
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Symlink(target, link)
}

// version is the server's, such as 150014 for 15.14.
func (s *Server) version(ctx context.Context) (string, error) {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return "", err
	}
	var version string
	err = conn.QueryRow(ctx, "SHOW server_version_num").Scan(&version)
	return version, errors.Join(err, conn.Close(ctx))
}
