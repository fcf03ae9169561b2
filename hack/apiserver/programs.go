package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is the interval of tries for a lock that another process has.
const lockPoll = 50 * time.Millisecond

// The releases that the modules in kubernetes/ and etcd/ require. A test compares the
// two places.
const (
	kubernetesVersion = "v1.36.3"
	etcdVersion       = "v3.6.0"
)

const (
	// assetsVariable names a folder with etcd and kube-apiserver, as for all tests with
	// controller-runtime.
	assetsVariable = "KUBEBUILDER_ASSETS"
	// releasesIndex lists the releases that setup-envtest downloads; it is
	// setup-envtest's own default.
	releasesIndex   = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"
	downloadTimeout = 5 * time.Minute
	// progressInterval is the interval of a build's progress messages.
	progressInterval = 10 * time.Second

	etcdProgram       = "etcd"
	apiServerProgram  = "kube-apiserver"
	controllerProgram = "kube-controller-manager"
)

// Programs are files, by the names of the programs.
type Programs map[string]string

type program struct{ name, module, pkg, version string }

// programs lists what a server needs, in the order of their start.
func programs(controllers bool) []program {
	const kubernetes = "k8s.io/kubernetes/cmd/"
	list := []program{
		{etcdProgram, "etcd", "go.etcd.io/etcd/server/v3", etcdVersion},
		{apiServerProgram, "kubernetes", kubernetes + apiServerProgram, kubernetesVersion},
	}
	if controllers {
		list = append(list, program{controllerProgram, "kubernetes", kubernetes + controllerProgram, kubernetesVersion})
	}
	return list
}

// EnsurePrograms returns etcd and kube-apiserver, and kube-controller-manager when
// controllers is set. etcd and kube-apiserver are those of KUBEBUILDER_ASSETS where
// it is set. Otherwise they are in the user's cache folder: setup-envtest downloads
// these two if it can, and the rest is built from source. A build takes some minutes
// and 2 GB of memory, and writes to progress every ten seconds. Processes that start at
// the same time share one build. The caller's working directory is inside the
// repository.
func EnsurePrograms(ctx context.Context, progress io.Writer, controllers bool) (Programs, error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("make the API server: %w: set HOME or XDG_CACHE_HOME", err)
	}
	name := strings.Join([]string{"kubernetes-" + kubernetesVersion, "etcd-" + etcdVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH}, "_")
	b := &builder{
		assets: os.Getenv(assetsVariable), cache: filepath.Join(cache, "relaypool", "apiserver", name), progress: progress,
		compile: func(p program, file string) error { return compile(ctx, root, p, file) },
	}
	b.download = sync.OnceValues(func() (string, error) {
		return download(ctx, root, releasesIndex, filepath.Join(b.cache, "envtest"))
	})
	found, err := b.ensure(ctx, programs(controllers))
	if err != nil {
		return nil, fmt.Errorf("make the API server: %w", err)
	}
	return found, nil
}

// builder finds programs, and makes those that are missing.
type builder struct {
	assets   string // the folder of KUBEBUILDER_ASSETS, or empty
	cache    string // the folder for the programs that it makes
	progress io.Writer
	download func() (folder string, err error)
	compile  func(p program, file string) error
}

func (b *builder) ensure(ctx context.Context, wanted []program) (found Programs, err error) {
	found = Programs{}
	var missing []program
	for _, p := range wanted {
		given := b.assets != "" && p.name != controllerProgram // it never has that program
		found[p.name] = filepath.Join(b.cache, p.name)
		if given {
			found[p.name] = filepath.Join(b.assets, p.name)
		}
		if exists(found[p.name]) {
			continue
		}
		if given {
			return nil, fmt.Errorf("%s is %s, a folder without %s: correct it, or unset it to have the program downloaded or built", assetsVariable, b.assets, p.name)
		}
		missing = append(missing, p)
	}
	if len(missing) == 0 {
		return found, nil
	}
	if err := os.MkdirAll(b.cache, 0o755); err != nil { //nolint:gosec // G301: programs for anybody to run, as in any cache of builds
		return nil, err
	}
	fmt.Fprintf(b.progress, "making %s in %s, unless another process does: waiting for that\n", missing[0].name, b.cache)
	lock := flock.New(filepath.Join(b.cache, "lock"))
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	for _, p := range missing {
		if exists(found[p.name]) { // made by the process that had the lock
			continue
		}
		if err := b.make(p, found[p.name]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// make downloads or builds one program.
func (b *builder) make(p program, file string) error {
	if p.name != controllerProgram {
		folder, err := b.download()
		if err == nil && exists(filepath.Join(folder, p.name)) {
			return os.Symlink(filepath.Join(folder, p.name), file)
		}
		fmt.Fprintf(b.progress, "no download of %s: %v\n", p.name, err)
	}
	began := time.Now()
	fmt.Fprintf(b.progress, "building %s %s, once, which takes some minutes\n", p.name, p.version)
	// The rename makes the file appear complete, so that nobody runs half a program.
	done := make(chan error, 1)
	go func() { done <- b.compile(p, file+".new") }()
	for {
		select {
		case <-time.After(progressInterval):
			fmt.Fprintf(b.progress, "building %s: %d s so far\n", p.name, int(time.Since(began).Seconds()))
		case err := <-done:
			if err != nil {
				_ = os.Remove(file + ".new") // there may be none
				return err
			}
			fmt.Fprintf(b.progress, "built %s in %d s\n", p.name, int(time.Since(began).Seconds()))
			return os.Rename(file+".new", file)
		}
	}
}

// download makes setup-envtest fetch etcd and kube-apiserver of our minor version into a
// folder, and returns the folder of both.
func download(ctx context.Context, root, index, into string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	minor := strings.TrimPrefix(kubernetesVersion[:strings.LastIndexByte(kubernetesVersion, '.')], "v")
	return run(ctx, root, "tool", "-modfile=hack/tools/setup-envtest/go.mod", "setup-envtest",
		"use", minor+".x", "--index", index, "--bin-dir", into, "--print", "path")
}

// compile builds with the go command in the module that pins the program.
func compile(ctx context.Context, root string, p program, file string) error {
	// Without a version Kubernetes reports v0.0.0, and clients disable features that they
	// believe missing there.
	number := strings.Split(strings.TrimPrefix(p.version, "v"), ".")
	const stamp = "-X k8s.io/component-base/version."
	flags := "-s -w " + stamp + "gitVersion=" + p.version + " " + stamp + "gitMajor=" + number[0] + " " + stamp + "gitMinor=" + number[1]
	_, err := run(ctx, filepath.Join(root, "hack", "apiserver", p.module), "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", file, p.pkg)
	if err != nil {
		err = fmt.Errorf("%w (the first build downloads modules: the module proxy, GOPROXY, has to answer)", err)
	}
	return err
}

func run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go then also ends its compilers
	cmd.WaitDelay = 10 * time.Second
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w: %s", strings.Join(args, " "), dir, err, lastLines(errs.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// ModuleRoot is the repository's folder, found upwards from the working directory, which
// is the package's in a test.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for dir := start; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if exists(filepath.Join(dir, "hack", "apiserver", "kubernetes", "go.mod")) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("find the repository: %s is not in a clone of it", start)
}

// lastLines is the end of an output, short enough for an error message.
func lastLines(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], " | ")
}
