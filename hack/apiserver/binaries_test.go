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

func TestWhatIsDownloadedIsNotBuilt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		there      []string // in the cache
		downloads  []string
		noDownload error
		wantBuilt  []string
		wantAsked  bool
	}{
		"etcd and API server are downloaded, controllers built":   {downloads: []string{"etcd", "kube-apiserver"}, wantAsked: true, wantBuilt: []string{"kube-controller-manager"}},
		"what the download lacks is built":                        {downloads: []string{"etcd"}, wantAsked: true, wantBuilt: []string{"kube-apiserver", "kube-controller-manager"}},
		"all is built when nothing is downloaded":                 {noDownload: errors.New("no such host"), wantAsked: true, wantBuilt: []string{"etcd", "kube-apiserver", "kube-controller-manager"}},
		"nothing is downloaded for the controllers alone":         {there: []string{"etcd", "kube-apiserver"}, wantBuilt: []string{"kube-controller-manager"}},
		"nothing is downloaded or built when everything is there": {there: []string{"etcd", "kube-apiserver", "kube-controller-manager"}},
		"what is in the cache is kept beside what is downloaded":  {there: []string{"etcd"}, downloads: []string{"etcd", "kube-apiserver"}, wantAsked: true, wantBuilt: []string{"kube-controller-manager"}},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			dir, downloads := filepath.Join(t.TempDir(), "cache"), t.TempDir()
			for _, name := range tt.there {
				write(t, filepath.Join(dir, name))
			}
			for _, name := range tt.downloads {
				write(t, filepath.Join(downloads, name))
			}
			var built []string
			asked := false
			b := builder{dir: dir, progress: io.Discard, run: func(_ context.Context, p program, file string) error {
				built = append(built, p.name)
				write(t, file)
				return nil
			}, fetch: func(context.Context) (string, error) {
				asked = true
				return downloads, tt.noDownload
			}}
			if err := b.ensure(t.Context(), programs(true)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.wantBuilt, built); diff != "" {
				t.Errorf("built (-want +got):\n%s", diff)
			}
			if asked != tt.wantAsked {
				t.Errorf("a download was tried: %t, expected %t", asked, tt.wantAsked)
			}
			if missing := b.missing(programs(true)); len(missing) != 0 {
				t.Errorf("still missing: %v", missing)
			}
		})
	}
}

func TestGivenPrograms(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, filepath.Join(folder, etcdProgram))
	if _, _, err := given(folder, programs(false)); err == nil || !strings.Contains(err.Error(), assetsVariable) || !strings.Contains(err.Error(), apiServerProgram) {
		t.Errorf("without kube-apiserver the error is %v, expected one with the variable and the program", err)
	}
	write(t, filepath.Join(folder, apiServerProgram))
	found, wanted, err := given(folder, programs(true))
	if err != nil {
		t.Fatal(err)
	}
	want := Binaries{etcdProgram: filepath.Join(folder, etcdProgram), apiServerProgram: filepath.Join(folder, apiServerProgram)}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if len(wanted) != 1 || wanted[0].name != controllerManagerProgram {
		t.Errorf("still wanted: %v, expected the controllers alone", wanted)
	}
	if found, wanted, err := given("", programs(true)); err != nil || len(found) != 0 || len(wanted) != 3 {
		t.Errorf("with no folder: found %v, wanted %v, %v; expected that all three are wanted", found, wanted, err)
	}
}

// The real setup-envtest, on a list of releases of our own.
func TestDownloaded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds setup-envtest")
	}
	minor := kubernetesVersion[:strings.LastIndex(kubernetesVersion, ".")]
	name := fmt.Sprintf("envtest-%s.0-%s-%s.tar.gz", minor, runtime.GOOS, runtime.GOARCH)
	archive := packed(t, "controller-tools/envtest/etcd", "controller-tools/envtest/kube-apiserver", "controller-tools/envtest/kubectl")
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/archive", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) })
	mux.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "releases:\n  %s.0:\n    %s:\n      hash: %x\n      selfLink: %s/archive\n", minor, name, sha512.Sum512(archive), server.URL)
	})
	dir := t.TempDir()
	t.Cleanup(func() { // setup-envtest takes the right to write away
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error { return os.Chmod(path, 0o700) })
	})
	folder, err := downloaded(t.Context(), server.URL+"/index.yaml", dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{etcdProgram, apiServerProgram} {
		if content, err := os.ReadFile(filepath.Join(folder, program)); err != nil || len(content) == 0 {
			t.Errorf("%s: %d bytes, %v; expected those of the archive", program, len(content), err)
		}
	}
	if _, err := downloaded(t.Context(), server.URL+"/missing.yaml", dir); err == nil || !strings.Contains(err.Error(), "404") {
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
