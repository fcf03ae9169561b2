package apiserver

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The versions name the folder of the binaries: were they not those that are
// built, a newer release would never be.
func TestVersionsAreThoseOfTheModules(t *testing.T) {
	t.Parallel()
	for _, p := range programs(true) {
		text, err := os.ReadFile(filepath.Join(p.module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		required := "k8s.io/kubernetes"
		if p.module == "etcd" {
			required = p.pkg
		}
		if !strings.Contains(string(text), "\nrequire "+required+" "+p.version+"\n") {
			t.Errorf("%s/go.mod does not require %s %s", p.module, required, p.version)
		}
		tools, err := os.ReadFile(filepath.Join(p.module, "tools.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(tools), `_ "`+p.pkg+`"`) {
			t.Errorf("%s/tools.go does not import %s, so that go.sum need not know its dependencies", p.module, p.pkg)
		}
	}
}

func TestBuilder(t *testing.T) {
	t.Parallel()
	list := []program{{name: "a", version: "v1"}, {name: "b", version: "v2"}}
	failure := errors.New("no compiler")
	tests := map[string]struct {
		there     []string
		failOn    string
		wantErr   error
		wantBuilt []string
		wantFiles []string
	}{
		"everything is built into an empty folder": {wantBuilt: []string{"a", "b"}, wantFiles: []string{"a", "b"}},
		"what is there is not built again":         {there: []string{"a"}, wantBuilt: []string{"b"}, wantFiles: []string{"a", "b"}},
		"nothing is built when all is there":       {there: []string{"a", "b"}, wantFiles: []string{"a", "b"}},
		"a failed build leaves no half program":    {failOn: "b", wantErr: failure, wantBuilt: []string{"a", "b"}, wantFiles: []string{"a"}},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "cache")
			for _, name := range tt.there {
				write(t, filepath.Join(dir, name))
			}
			var built []string
			b := builder{dir: dir, progress: io.Discard, run: func(_ context.Context, p program, file string) error {
				built = append(built, p.name)
				write(t, file) // what a compiler that fails has written so far
				if p.name == tt.failOn {
					return failure
				}
				return nil
			}}
			if err := b.ensure(t.Context(), list); !errors.Is(err, tt.wantErr) {
				t.Errorf("the error is %v, expected %v", err, tt.wantErr)
			}
			if diff := cmp.Diff(tt.wantBuilt, built); diff != "" {
				t.Errorf("built (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantFiles, programsIn(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildersAtOnceBuildOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var mu sync.Mutex
	builds := 0
	b := builder{dir: dir, progress: io.Discard, run: func(_ context.Context, _ program, file string) error {
		mu.Lock()
		defer mu.Unlock()
		builds++
		return os.WriteFile(file, nil, 0o700)
	}}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := b.ensure(t.Context(), []program{{name: "a"}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if builds != 1 {
		t.Errorf("%d builds, expected 1", builds)
	}
}

func TestWaitForAnotherBuilderEndsWithTheContext(t *testing.T) {
	t.Parallel()
	b := builder{dir: t.TempDir(), progress: io.Discard, run: func(context.Context, program, string) error {
		t.Error("built beside another process")
		return nil
	}}
	lock, err := b.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := b.ensure(ctx, []program{{name: "a"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v, expected the context's", err)
	}
}

func TestBuildErrorsSayWhereAndWhy(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a")
	err := runBuild(t.Context(), program{name: "a", module: "etcd", pkg: "go.etcd.io/etcd/server/v3/missing"}, file)
	if err == nil || !strings.Contains(err.Error(), filepath.Join("hack", "apiserver", "etcd")) || !strings.Contains(err.Error(), "go.etcd.io/etcd/server/v3/missing") {
		t.Errorf("the error is %v, expected one with the module's folder and the package", err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o700)); err != nil {
		t.Fatal(err)
	}
}

// programsIn lists the folder without its lock.
func programsIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.Name() != "lock" {
			names = append(names, entry.Name())
		}
	}
	return names
}
