package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// install installs PostgreSQL with apt-get when root where that is; anywhere else its
// error says what to install.
func (m machine) install(ctx context.Context) (err error) {
	switch {
	case !m.apt:
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
