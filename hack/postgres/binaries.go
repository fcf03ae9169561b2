package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// binaries is one installation of PostgreSQL's server.
type binaries struct {
	dir   string // holds initdb and postgres
	major int    // such as 15
}

// usualPlaces are the folders, as globs, where packages put initdb and
// postgres without adding them to PATH.
var usualPlaces = []string{
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

// machine is what finding and installing PostgreSQL needs to know of the
// computer, so that tests can describe another one.
type machine struct {
	path      string   // PATH
	places    []string // globs, see usualPlaces
	root      bool
	osRelease string // path of os-release(5)
	aptConf   string // folder of postgresql-common's settings for new clusters
	lock      string // file that an installation holds
	run       func(ctx context.Context, log io.Writer, name string, args ...string) error
	log       io.Writer
}

func thisMachine(log io.Writer) machine {
	return machine{
		path:      os.Getenv("PATH"),
		places:    usualPlaces,
		root:      os.Geteuid() == 0,
		osRelease: "/etc/os-release",
		aptConf:   "/etc/postgresql-common/createcluster.d",
		lock:      filepath.Join(os.TempDir(), "relaypool-install-postgres.lock"),
		run:       runLogged,
		log:       log,
	}
}

// find returns the installations of this machine, PATH's first, then the
// newest; when there is none it installs one or says how to.
func (m machine) find(ctx context.Context) (found []binaries, err error) {
	found, err = m.installed(ctx)
	if err != nil || len(found) > 0 {
		return found, err
	}
	unlock, err := m.lockInstall(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if found, err = m.installed(ctx); err != nil || len(found) > 0 { // by the process that had the lock
		return found, err
	}
	if err := m.install(ctx); err != nil {
		return nil, err
	}
	if found, err = m.installed(ctx); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("apt-get installed the package postgresql, but initdb and postgres are still in none of the usual places; " +
			"add their folder to PATH")
	}
	return found, nil
}

func (m machine) installed(ctx context.Context) ([]binaries, error) {
	dirs := filepath.SplitList(m.path)
	onPath := len(dirs)
	for _, pattern := range m.places {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("find postgres: %w", err)
		}
		dirs = append(dirs, matches...)
	}
	var first, rest []binaries
	seen := map[string]bool{}
	for i, dir := range dirs {
		dir, ok := serverDir(dir)
		if !ok || seen[dir] {
			continue
		}
		seen[dir] = true
		major, err := majorVersion(ctx, dir)
		if err != nil {
			return nil, err
		}
		if i < onPath {
			first = append(first, binaries{dir, major})
		} else {
			rest = append(rest, binaries{dir, major})
		}
	}
	slices.SortStableFunc(rest, func(a, b binaries) int { return cmp.Compare(b.major, a.major) })
	return append(first, rest...), nil
}

// serverDir resolves links, because initdb looks for postgres beside its own
// real file, and tells whether both are there.
func serverDir(dir string) (string, bool) {
	initdb, err := filepath.EvalSymlinks(filepath.Join(dir, "initdb"))
	if err != nil {
		return "", false
	}
	resolved := filepath.Dir(initdb)
	info, err := os.Stat(filepath.Join(resolved, "postgres"))
	return resolved, err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// majorVersion asks the binary: "postgres (PostgreSQL) 15.18 (Debian …)".
func majorVersion(ctx context.Context, dir string) (int, error) {
	path := filepath.Join(dir, "postgres")
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	_, version, _ := strings.Cut(string(out), ") ")
	digits := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if digits > 0 {
		version = version[:digits]
	}
	major, err := strconv.Atoi(version)
	if err != nil {
		return 0, fmt.Errorf("ask %s for its version: answered %q, expected \"postgres (PostgreSQL) <version>\"", path, strings.TrimSpace(string(out)))
	}
	return major, nil
}

// choose takes the installation that can open an existing cluster, because
// PostgreSQL opens only those of its own major version, else the first.
func choose(installed []binaries, clusterDir string) (binaries, error) {
	text, err := os.ReadFile(filepath.Join(clusterDir, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return installed[0], nil
	}
	if err != nil {
		return binaries{}, fmt.Errorf("read the cluster's version: %w", err)
	}
	version := strings.TrimSpace(string(text))
	var have []string
	for _, b := range installed {
		if strconv.Itoa(b.major) == version {
			return b, nil
		}
		have = append(have, strconv.Itoa(b.major))
	}
	return binaries{}, fmt.Errorf("the data in %s was made by PostgreSQL %s, but this machine has only %s: install version %s, or delete the folder to start empty",
		clusterDir, version, strings.Join(have, ", "), version)
}
