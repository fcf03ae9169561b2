package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// usualFolders are patterns of the folders that packages install initdb and postgres into
// without adding them to PATH.
var usualFolders = []string{
	"/usr/lib/postgresql/*/bin",                      // Debian, Ubuntu
	"/usr/pgsql-*/bin",                               // PostgreSQL's own RPMs
	"/usr/libexec/postgresql*",                       // Alpine
	"/usr/bin",                                       // Fedora, Arch
	"/opt/homebrew/opt/postgresql*/bin",              // Homebrew on Apple silicon
	"/usr/local/opt/postgresql*/bin",                 // Homebrew on Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin", // Homebrew on Linux
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin", // built from source
}

// machine describes the computer for find and install. Tests describe other computers.
type machine struct {
	path    string   // PATH
	folders []string // patterns, see usualFolders
	root    bool     // whether this process runs as root
	apt     bool     // whether apt-get exists
	aptConf string   // folder of postgresql-common's settings for new clusters
	lock    string   // file that an installation locks
	run     func(ctx context.Context, log io.Writer, name string, args ...string) error
	log     io.Writer
}

func thisMachine(log io.Writer) machine {
	_, aptErr := exec.LookPath("apt-get")
	return machine{
		path:    os.Getenv("PATH"),
		folders: usualFolders,
		root:    os.Geteuid() == 0,
		apt:     aptErr == nil,
		aptConf: "/etc/postgresql-common/createcluster.d",
		lock:    filepath.Join(os.TempDir(), "relaypool-install-postgres.lock"),
		run:     runLogged,
		log:     log,
	}
}

// lockPoll is the interval between attempts to get a lock that another process holds.
const lockPoll = 50 * time.Millisecond

// find returns the folder of initdb and postgres: the first in PATH, otherwise the newest in
// the usual folders. If there is none, find installs PostgreSQL, or returns an error with the
// command that installs it.
func (m machine) find(ctx context.Context) (found string, err error) {
	if found = m.installed(); found != "" {
		return found, nil
	}
	// The tests of several packages start at the same time, and apt-get fails while another runs.
	lock := flock.New(m.lock)
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return "", fmt.Errorf("install postgresql: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if found = m.installed(); found != "" { // another process installed it while it had the lock
		return found, nil
	}
	if err := m.install(ctx); err != nil {
		return "", err
	}
	if found = m.installed(); found == "" {
		err = errors.New("apt-get installed the package postgresql, but initdb and postgres are still in none of the usual folders; " +
			"add their folder to PATH")
	}
	return found, err
}

func (m machine) installed() string {
	dirs := filepath.SplitList(m.path)
	for _, pattern := range m.folders {
		matches, _ := filepath.Glob(pattern) // Glob fails only for an invalid pattern
		slices.Reverse(matches)              // newest version first: versions have two digits since 2017
		dirs = append(dirs, matches...)
	}
	for _, dir := range dirs {
		if dir, ok := serverDir(dir); ok {
			return dir
		}
	}
	return ""
}

// serverDir resolves the links of dir's initdb, because initdb looks for postgres in the folder
// of its real file. It returns that folder, and whether the folder has postgres.
func serverDir(dir string) (string, bool) {
	initdb, err := filepath.EvalSymlinks(filepath.Join(dir, "initdb"))
	if err != nil {
		return "", false
	}
	resolved := filepath.Dir(initdb)
	info, err := os.Stat(filepath.Join(resolved, "postgres"))
	return resolved, err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// install installs PostgreSQL with apt-get if apt-get exists and this process runs as root.
// Otherwise its error says what to install.
func (m machine) install(ctx context.Context) (err error) {
	switch {
	case !m.apt:
		return errors.New("PostgreSQL's server (initdb and postgres) was not found on PATH or in the usual folders: " +
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

// withoutMainCluster keeps the package from creating and starting a cluster on port 5432. It
// writes a file into the drop-in folder of postgresql-common's createcluster.conf; restore
// removes the file.
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

func runLogged(ctx context.Context, log io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
