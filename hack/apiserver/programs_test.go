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

// The cache folder's name has the versions. If the modules had newer versions, cached programs of
// the old versions would be used.
func TestVersionsMatchTheModules(t *testing.T) {
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
			t.Errorf("%s/go.mod has no tool %s, want it, so that go.sum has its dependencies", p.module, p.pkg)
		}
	}
}

func TestProgramsAreFoundDownloadedOrBuilt(t *testing.T) {
	t.Parallel()
	const etcd, api, controllers = etcdProgram, apiServerProgram, controllerProgram
	all := programs(true)
	failure := errors.New("no compiler")
	tests := map[string]struct {
		assets       []string // nil if KUBEBUILDER_ASSETS is not set
		cached       []string
		downloads    []string // nil if nothing can be downloaded
		failOn       string
		wantDownload bool // whether a download is tried
		wantBuilt    []string
		wantCached   []string
		wantErr      string
	}{
		"programs that cannot be downloaded are built": {wantDownload: true, wantBuilt: []string{etcd, api, controllers}, wantCached: []string{etcd, api, controllers}},
		"downloaded programs are not built":            {downloads: []string{etcd, api}, wantDownload: true, wantBuilt: []string{controllers}, wantCached: []string{etcd, api, controllers}},
		"programs missing in the download are built":   {downloads: []string{etcd}, wantDownload: true, wantBuilt: []string{api, controllers}, wantCached: []string{etcd, api, controllers}},
		"nothing is downloaded for controllers alone":  {cached: []string{etcd, api}, wantBuilt: []string{controllers}, wantCached: []string{etcd, api, controllers}},
		"cached programs are used":                     {cached: []string{etcd, api, controllers}, wantCached: []string{etcd, api, controllers}},
		"cached programs are kept":                     {cached: []string{etcd}, downloads: []string{etcd, api}, wantDownload: true, wantBuilt: []string{controllers}, wantCached: []string{etcd, api, controllers}},
		"a failed build leaves no incomplete program":  {failOn: api, wantDownload: true, wantBuilt: []string{etcd, api}, wantCached: []string{etcd}, wantErr: "no compiler"},
		"programs of KUBEBUILDER_ASSETS are used":      {assets: []string{etcd, api}, wantBuilt: []string{controllers}, wantCached: []string{controllers}},
		"a program missing in KUBEBUILDER_ASSETS":      {assets: []string{etcd}, wantErr: "KUBEBUILDER_ASSETS"},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			cache, downloads := filepath.Join(t.TempDir(), "cache"), t.TempDir()
			write(t, cache, tt.cached...)
			write(t, downloads, tt.downloads...)
			var built []string
			tried := false
			b := builder{cache: cache, progress: io.Discard, download: func() (string, error) {
				tried = true
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
				t.Errorf("error %v, want one with %q", err, tt.wantErr)
			}
			if diff := cmp.Diff(tt.wantBuilt, built); diff != "" {
				t.Errorf("built (-want +got):\n%s", diff)
			}
			if tried != tt.wantDownload {
				t.Errorf("a download was tried: %t, want %t", tried, tt.wantDownload)
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

// The test runs the real setup-envtest with its own list of releases.
func TestDownloadRunsSetupEnvtest(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the test builds setup-envtest")
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
			t.Errorf("%s: got %d bytes, error %v; want the content of the archive", program, len(content), err)
		}
	}
	if _, err := download(t.Context(), root(t), server.URL+"/missing.yaml", t.TempDir()); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("download without a list of releases: error %v, want the status 404", err)
	}
}

// packed returns a compressed archive of programs, each with its name as content.
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

func TestConcurrentCallsShareOneBuild(t *testing.T) {
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
		t.Errorf("got %d builds, want 1", builds)
	}
}

func TestWaitForAnotherBuildEndsWithTheContext(t *testing.T) {
	t.Parallel()
	b := builder{cache: t.TempDir(), progress: io.Discard, compile: func(program, string) error {
		t.Error("the program was built while another process held the lock")
		return nil
	}}
	lock := flock.New(filepath.Join(b.cache, "lock"))
	if free, err := lock.TryLock(); err != nil || !free {
		t.Fatalf("lock the folder: got %t, error %v; want true", free, err)
	}
	defer func() { _ = lock.Unlock() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := b.ensure(ctx, []program{{name: controllerProgram}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want deadline exceeded", err)
	}
}

func TestBuildErrorsNameTheModuleAndPackage(t *testing.T) {
	t.Parallel()
	p := program{name: "a", module: "etcd", pkg: "go.etcd.io/etcd/server/v3/missing", version: "v3.6.0"}
	err := compile(t.Context(), root(t), p, filepath.Join(t.TempDir(), "a"))
	if err == nil || !strings.Contains(err.Error(), filepath.Join("hack", "apiserver", "etcd")) || !strings.Contains(err.Error(), p.pkg) {
		t.Errorf("error %v, want one with the module's folder and the package", err)
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

// names lists the files of a folder, which may not exist, except for the lock.
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
