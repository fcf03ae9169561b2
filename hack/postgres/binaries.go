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

	"github.com/relaypool/relaypool/hack/filelock"
)

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
	path    string   // PATH
	places  []string // globs, see usualPlaces
	root    bool
	apt     bool   // whether apt-get is there
	aptConf string // folder of postgresql-common's settings for new clusters
	lock    string // file that an installation holds
	run     func(ctx context.Context, log io.Writer, name string, args ...string) error
	log     io.Writer
}

func thisMachine(log io.Writer) machine {
	_, aptErr := exec.LookPath("apt-get")
	return machine{
		path:    os.Getenv("PATH"),
		places:  usualPlaces,
		root:    os.Geteuid() == 0,
		apt:     aptErr == nil,
		aptConf: "/etc/postgresql-common/createcluster.d",
		lock:    filepath.Join(os.TempDir(), "relaypool-install-postgres.lock"),
		run:     runLogged,
		log:     log,
	}
}

// find returns the folders of this machine's installations, which hold initdb and
// postgres, PATH's first, then the newest; when there is none it installs one or says
// how to.
func (m machine) find(ctx context.Context) (found []string, err error) {
	if found, err = m.installed(); err != nil || len(found) > 0 {
		return found, err
	}
	// The tests of several packages begin at once, and of two apt-get one fails.
	lock, err := filelock.Wait(ctx, m.lock)
	if err != nil {
		return nil, fmt.Errorf("install postgresql: %w", err)
	}
	defer func() { err = errors.Join(err, filelock.Release(lock)) }()
	if found, err = m.installed(); err != nil || len(found) > 0 { // by the process that had the lock
		return found, err
	}
	if err := m.install(ctx); err != nil {
		return nil, err
	}
	if found, err = m.installed(); err == nil && len(found) == 0 {
		err = errors.New("apt-get installed the package postgresql, but initdb and postgres are still in none of the usual places; " +
			"add their folder to PATH")
	}
	return found, err
}

func (m machine) installed() (found []string, err error) {
	dirs := filepath.SplitList(m.path)
	for _, pattern := range m.places {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("find postgres: %w", err)
		}
		slices.Reverse(matches) // the highest version, of two digits since 2017, is the last name
		dirs = append(dirs, matches...)
	}
	for _, dir := range dirs {
		if dir, ok := serverDir(dir); ok && !slices.Contains(found, dir) {
			found = append(found, dir)
		}
	}
	return found, nil
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

// choose takes the installation that can open an existing cluster, because
// PostgreSQL opens only those of its own major version, else the first.
func choose(ctx context.Context, installed []string, clusterDir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(clusterDir, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return installed[0], nil
	}
	if err != nil {
		return "", fmt.Errorf("read the cluster's version: %w", err)
	}
	version := strings.TrimSpace(string(text))
	var have []string
	for _, dir := range installed {
		path := filepath.Join(dir, "postgres")
		out, err := exec.CommandContext(ctx, path, "--version").Output() // "postgres (PostgreSQL) 15.18 (Debian …)"
		if err != nil {
			return "", fmt.Errorf("ask %s for its version: %w", path, err)
		}
		_, number, _ := strings.Cut(strings.TrimSpace(string(out)), ") ")
		if after, ok := strings.CutPrefix(number, version); ok && strings.IndexAny(after, "0123456789") != 0 {
			return dir, nil
		}
		have = append(have, number)
	}
	return "", fmt.Errorf("the data in %s was made by PostgreSQL %s, but this machine has only %s: install version %s, or delete the folder to start empty",
		clusterDir, version, strings.Join(have, ", "), version)
}
