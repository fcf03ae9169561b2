package apiserver

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
)

func root(t *testing.T) string {
	t.Helper()
	root, err := ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// The versions are in the name of the programs' folder. If they differed from the built ones, a
// newer release would never be built.
func TestVersionsAreThoseOfTheModules(t *testing.T) {
	t.Parallel()
	for _, p := range programs(true) {
		text, err := os.ReadFile(filepath.Join(p.module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		module, _, _ := strings.Cut(p.pkg, "/cmd/")
		if !strings.Contains(string(text), "\nrequire "+module+" "+p.version+" // indirect\n") {
			t.Errorf("%s/go.mod does not require %s %s", p.module, module, p.version)
		}
		if !strings.Contains(string(text), p.pkg+"\n") {
			t.Errorf("%s/go.mod has no tool %s, so that go.sum need not know its dependencies", p.module, p.pkg)
		}
	}
}

func TestProgramsAreFoundDownloadedOrBuilt(t *testing.T) {
	t.Parallel()
	const etcd, api, controllers = etcdProgram, apiServerProgram, controllerProgram
	all := programs(true)
	failure := errors.New("no compiler")
	tests := map[string]struct {
		assets     []string // nil if KUBEBUILDER_ASSETS is not set
		cached     []string
		downloads  []string // nil if nothing can be downloaded
		failOn     string
		wantAsked  bool // for a download
		wantBuilt  []string
		wantCached []string
		wantErr    string
	}{
		"what cannot be downloaded is built":            {wantAsked: true, wantBuilt: []string{etcd, api, controllers}, wantCached: []string{etcd, api, controllers}},
		"what is downloaded is not built":               {downloads: []string{etcd, api}, wantAsked: true, wantBuilt: []string{controllers}, wantCached: []string{etcd, api, controllers}},
		"what the download lacks is built":              {downloads: []string{etcd}, wantAsked: true, wantBuilt: []string{api, controllers}, wantCached: []string{etcd, api, controllers}},
		"nothing is downloaded for controllers alone":   {cached: []string{etcd, api}, wantBuilt: []string{controllers}, wantCached: []string{etcd, api, controllers}},
		"nothing is made when everything is there":      {cached: []string{etcd, api, controllers}, wantCached: []string{etcd, api, controllers}},
		"what is cached stays beside what is new":       {cached: []string{etcd}, downloads: []string{etcd, api}, wantAsked: true, wantBuilt: []string{controllers}, wantCached: []string{etcd, api, controllers}},
		"a failed build leaves no half program":         {failOn: api, wantAsked: true, wantBuilt: []string{etcd, api}, wantCached: []string{etcd}, wantErr: "no compiler"},
		"given programs are not made":                   {assets: []string{etcd, api}, wantBuilt: []string{controllers}, wantCached: []string{controllers}},
		"a folder that lacks one is the caller's error": {assets: []string{etcd}, wantErr: "KUBEBUILDER_ASSETS"},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			cache, downloads := filepath.Join(t.TempDir(), "cache"), t.TempDir()
			write(t, cache, tt.cached...)
			write(t, downloads, tt.downloads...)
			var built []string
			asked := false
			b := builder{cache: cache, progress: io.Discard, download: func() (string, error) {
				asked = true
				if tt.downloads == nil {
					return "", errors.New("no such host")
				}
				return downloads, nil
			}, compile: func(p program, file string) error {
				built = append(built, p.name)
				write(t, filepath.Dir(file), filepath.Base(file)) // the partial output of a compiler that fails
				if p.name == tt.failOn {
					return failure
				}
				return nil
			}}
			if tt.assets != nil {
				b.assets = t.TempDir()
				write(t, b.assets, tt.assets...)
			}
			found, err := b.ensure(t.Context(), all)
			if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("the error is %v, expected one with %q", err, tt.wantErr)
			}
			if diff := cmp.Diff(tt.wantBuilt, built); diff != "" {
				t.Errorf("built (-want +got):\n%s", diff)
			}
			if asked != tt.wantAsked {
				t.Errorf("a download was tried: %t, expected %t", asked, tt.wantAsked)
			}
			if diff := cmp.Diff(tt.wantCached, names(t, cache)); diff != "" {
				t.Errorf("cached (-want +got):\n%s", diff)
			}
			for _, p := range all {
				if _, err := os.Stat(found[p.name]); err != nil && tt.wantErr == "" {
					t.Errorf("%s: %v", p.name, err)
				}
			}
		})
	}
}

// The real setup-envtest, with our own list of releases.
func TestDownload(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds setup-envtest")
	}
	release := kubernetesVersion[:strings.LastIndex(kubernetesVersion, ".")] + ".0"
	name := fmt.Sprintf("envtest-%s-%s-%s.tar.gz", release, runtime.GOOS, runtime.GOARCH)
	archive := packed(t, "controller-tools/envtest/etcd", "controller-tools/envtest/kube-apiserver", "controller-tools/envtest/kubectl")
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/archive", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) })
	mux.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "releases:\n  %s:\n    %s:\n      hash: %x\n      selfLink: %s/archive\n", release, name, sha512.Sum512(archive), server.URL)
	})
	dir := t.TempDir()
	t.Cleanup(func() { // setup-envtest removes the write permission
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error { return os.Chmod(path, 0o700) })
	})
	folder, err := download(t.Context(), root(t), server.URL+"/index.yaml", dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{etcdProgram, apiServerProgram} {
		if content, err := os.ReadFile(filepath.Join(folder, program)); err != nil || len(content) == 0 {
			t.Errorf("%s: %d bytes, %v; expected those of the archive", program, len(content), err)
		}
	}
	if _, err := download(t.Context(), root(t), server.URL+"/missing.yaml", t.TempDir()); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("without a list of releases the error is %v, expected the 404", err)
	}
}

// packed is a compressed archive of programs, each with its name as content.
func packed(t *testing.T, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, name := range names {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(name)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestProcessesThatAskAtTheSameTimeShareOneBuild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var mu sync.Mutex
	builds := 0
	b := builder{cache: dir, progress: io.Discard, compile: func(_ program, file string) error {
		mu.Lock()
		defer mu.Unlock()
		builds++
		return os.WriteFile(file, nil, 0o700)
	}}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := b.ensure(t.Context(), []program{{name: controllerProgram}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if builds != 1 {
		t.Errorf("%d builds, expected 1", builds)
	}
}

func TestTheWaitForAnotherBuildEndsWithTheContext(t *testing.T) {
	t.Parallel()
	b := builder{cache: t.TempDir(), progress: io.Discard, compile: func(program, string) error {
		t.Error("built beside another process")
		return nil
	}}
	lock := flock.New(filepath.Join(b.cache, "lock"))
	if free, err := lock.TryLock(); err != nil || !free {
		t.Fatalf("the lock is free: %t (%v)", free, err)
	}
	defer func() { _ = lock.Unlock() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := b.ensure(ctx, []program{{name: controllerProgram}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v, expected the context's", err)
	}
}

func TestBuildErrorsNameLogAndCause(t *testing.T) {
	t.Parallel()
	p := program{name: "a", module: "etcd", pkg: "go.etcd.io/etcd/server/v3/missing", version: "v3.6.0"}
	err := compile(t.Context(), root(t), p, filepath.Join(t.TempDir(), "a"))
	if err == nil || !strings.Contains(err.Error(), filepath.Join("hack", "apiserver", "etcd")) || !strings.Contains(err.Error(), p.pkg) {
		t.Errorf("the error is %v, expected one with the module's folder and the package", err)
	}
}

func write(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(path, nil, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
}

// names lists a folder, which may be missing, without its lock.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		if entry.Name() != "lock" {
			found = append(found, entry.Name())
		}
	}
	return found
}
