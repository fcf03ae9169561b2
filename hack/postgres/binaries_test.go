package postgres

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeServer puts an initdb and a postgres into dir.
func fakeServer(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFindPrefersPathThenTheNewestVersion(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"lib/15/bin", "lib/18/bin", "other"} {
		fakeServer(t, filepath.Join(root, dir))
	}
	// For a folder with links, such as /usr/local/bin, find returns the folder of the real files.
	links := filepath.Join(root, "links")
	if err := os.Mkdir(links, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "other/initdb"), filepath.Join(links, "initdb")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/nonexistent:" + links: "other", "/nonexistent": "lib/18/bin"} {
		m := machine{path: path, folders: []string{filepath.Join(root, "lib/*/bin"), filepath.Join(root, "other")}}
		got, err := m.find(t.Context())
		if err != nil || got != filepath.Join(root, want) {
			t.Errorf("with the PATH %s: got %s, error %v; want %s", path, got, err, want)
		}
	}
}

func TestMissingServer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		apt       bool
		root      bool
		aptFails  bool
		installs  bool // whether apt-get installs the programs
		wantRuns  []string
		wantError string
	}{
		"for root on Debian the package is installed": {
			apt: true, root: true, installs: true,
			wantRuns: []string{"apt-get update", "apt-get install -y --no-install-recommends postgresql"},
		},
		"an error of apt-get is returned": {
			apt: true, root: true, aptFails: true,
			wantRuns: []string{"apt-get update"}, wantError: "install postgresql: no network",
		},
		"a package without the programs is an error": {
			apt: true, root: true,
			wantRuns:  []string{"apt-get update", "apt-get install -y --no-install-recommends postgresql"},
			wantError: "add their folder to PATH",
		},
		"an ordinary user on Debian gets the command": {apt: true, wantError: "sudo apt-get install postgresql"},
		"root on Fedora gets the package's name":      {root: true, wantError: "postgresql-server (Fedora)"},
		"an ordinary user elsewhere gets the package": {wantError: "postgresql@17 (Homebrew)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			m := machine{
				folders: []string{filepath.Join(dir, "lib/*/bin")},
				root:    tt.root,
				apt:     tt.apt,
				aptConf: filepath.Join(dir, "createcluster.d"),
				lock:    filepath.Join(dir, "lock"),
				log:     t.Output(),
			}
			dropIn := filepath.Join(m.aptConf, "relaypool.conf")
			var runs []string
			m.run = func(_ context.Context, _ io.Writer, name string, args ...string) error {
				runs = append(runs, name+" "+strings.Join(args, " "))
				if text, err := os.ReadFile(dropIn); err != nil || string(text) != "create_main_cluster = false\n" {
					t.Errorf("apt-get ran with the drop-in %q, error %v; want create_main_cluster = false", text, err)
				}
				if tt.aptFails {
					return errors.New("no network")
				}
				if tt.installs && args[0] == "install" {
					fakeServer(t, filepath.Join(dir, "lib/15/bin"))
				}
				return nil
			}
			found, err := m.find(t.Context())
			if diff := cmp.Diff(tt.wantRuns, runs); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
			if _, err := os.Stat(dropIn); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("stat the drop-in: error %v, want that it is removed", err)
			}
			if tt.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantError) {
					t.Errorf("got error %v, want one with %q", err, tt.wantError)
				}
				return
			}
			if err != nil || found == "" {
				t.Errorf("got folder %q, error %v; want an installed server", found, err)
			}
		})
	}
}

func TestConcurrentProcessesInstallOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := machine{
		folders: []string{filepath.Join(dir, "lib/*/bin")}, root: true, apt: true,
		aptConf: filepath.Join(dir, "createcluster.d"), lock: filepath.Join(dir, "lock"), log: io.Discard,
	}
	var installs atomic.Int32
	m.run = func(_ context.Context, _ io.Writer, _ string, args ...string) error {
		if args[0] == "install" {
			installs.Add(1)
			fakeServer(t, filepath.Join(dir, "new/bin"))
			return errors.Join(os.Mkdir(filepath.Join(dir, "lib"), 0o700), os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "lib/15")))
		}
		return nil
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if found, err := m.find(t.Context()); err != nil || found == "" {
				t.Errorf("got folder %q, error %v; want the installed server", found, err)
			}
		})
	}
	all.Wait()
	if n := installs.Load(); n != 1 {
		t.Errorf("PostgreSQL was installed %d times, want once", n)
	}
}
