package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// install installs PostgreSQL with apt when root on Debian or one of its
// derivatives; anywhere else its error says what to install.
func (m machine) install(ctx context.Context) (err error) {
	debian := isDebian(m.osRelease)
	switch {
	case !debian:
		return errors.New("PostgreSQL's server (initdb and postgres) was not found on PATH or in the usual places: " +
			"install the package postgresql-server (Fedora), postgresql (Arch, Alpine) or postgresql@17 (Homebrew)")
	case !m.root:
		return errors.New("PostgreSQL's server (initdb and postgres) was not found on PATH or in /usr/lib/postgresql: " +
			"install it with `sudo apt-get install postgresql`")
	}
	fmt.Fprintln(m.log, "PostgreSQL is not installed: installing the package postgresql with apt-get")
	restore, err := m.withoutMainCluster()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, restore()) }()
	if err := m.run(ctx, m.log, "apt-get", "update"); err != nil {
		return fmt.Errorf("install postgresql: %w", err)
	}
	if err := m.run(ctx, m.log, "apt-get", "install", "-y", "--no-install-recommends", "postgresql"); err != nil {
		return fmt.Errorf("install postgresql: %w", err)
	}
	return nil
}

// lockInstall waits until no other process installs: the tests of several packages
// begin at once, and of two apt-get one fails.
func (m machine) lockInstall(ctx context.Context) (release func() error, err error) {
	file, err := os.OpenFile(m.lock, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("install postgresql: %w", err)
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() error { return unlock(file) }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("install postgresql: lock %s: %w", m.lock, err), file.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("install postgresql: wait for another process that does: %w", ctx.Err()), file.Close())
		case <-time.After(pollInterval):
		}
	}
}

// withoutMainCluster keeps the package from creating and starting a cluster
// of its own on port 5432, which nobody asked for. It uses the drop-in folder
// of postgresql-common's createcluster.conf and leaves no trace.
func (m machine) withoutMainCluster() (restore func() error, err error) {
	if err := os.MkdirAll(m.aptConf, 0o755); err != nil { //nolint:gosec // a folder of /etc, readable like its neighbours
		return nil, fmt.Errorf("install postgresql: %w", err)
	}
	path := filepath.Join(m.aptConf, "relaypool.conf")
	if err := os.WriteFile(path, []byte("create_main_cluster = false\n"), 0o644); err != nil { //nolint:gosec // read by the user postgres
		return nil, fmt.Errorf("install postgresql: %w", err)
	}
	return func() error { return os.Remove(path) }, nil
}

// isDebian reads ID and ID_LIKE of os-release(5).
func isDebian(osRelease string) bool {
	file, err := os.Open(osRelease)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), "=")
		if key != "ID" && key != "ID_LIKE" {
			continue
		}
		if slices.Contains(strings.Fields(strings.Trim(value, `"'`)), "debian") {
			return true
		}
	}
	return false
}

// runLogged runs a command with its output, which is its progress, in log.
func runLogged(ctx context.Context, log io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
