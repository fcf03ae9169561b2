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

// lockPoll is the interval between attempts to get a lock that another process holds.
const lockPoll = 50 * time.Millisecond

// The versions that the modules in kubernetes/ and etcd/ require. A test compares them.
const (
	kubernetesVersion = "v1.36.3"
	etcdVersion       = "v3.6.0"
)

const (
	// assetsVariable names an environment variable with a folder of etcd and
	// kube-apiserver, which all tests with controller-runtime use.
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

// Programs maps the names of programs to their files.
type Programs map[string]string

type program struct{ name, module, pkg, version string }

// programs returns the programs that a server needs, in the order of their start.
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

// EnsurePrograms returns etcd and kube-apiserver, and if controllers is set, also
// kube-controller-manager. If KUBEBUILDER_ASSETS is set, etcd and kube-apiserver are
// taken from that folder. Otherwise setup-envtest downloads them if it can. Missing
// programs are built from source into the user's cache folder. A build takes some minutes
// and 2 GB of memory, and reports its progress every ten seconds. Processes that start at
// the same time share one build. The caller's working directory must be inside the
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

// builder finds programs, and downloads or builds missing programs.
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
		fromAssets := b.assets != "" && p.name != controllerProgram // which is never in that folder
		found[p.name] = filepath.Join(b.cache, p.name)
		if fromAssets {
			found[p.name] = filepath.Join(b.assets, p.name)
		}
		if exists(found[p.name]) {
			continue
		}
		if fromAssets {
			return nil, fmt.Errorf("%s is %s, a folder without %s: correct it, or unset it to have the program downloaded or built", assetsVariable, b.assets, p.name)
		}
		missing = append(missing, p)
	}
	if len(missing) == 0 {
		return found, nil
	}
	if err := os.MkdirAll(b.cache, 0o755); err != nil { //nolint:gosec // G301: anybody may run the programs
		return nil, err
	}
	fmt.Fprintf(b.progress, "making %s in %s, or waiting until another process has made it\n", missing[0].name, b.cache)
	lock := flock.New(filepath.Join(b.cache, "lock"))
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	for _, p := range missing {
		if exists(found[p.name]) { // another process made it while it had the lock
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
		fmt.Fprintf(b.progress, "%s cannot be downloaded: %v\n", p.name, err)
	}
	began := time.Now()
	fmt.Fprintf(b.progress, "building %s %s once, which takes some minutes\n", p.name, p.version)
	// The rename is atomic, so that no process runs an incomplete program.
	done := make(chan error, 1)
	go func() { done <- b.compile(p, file+".new") }()
	for {
		select {
		case <-time.After(progressInterval):
			fmt.Fprintf(b.progress, "building %s: %d s so far\n", p.name, int(time.Since(began).Seconds()))
		case err := <-done:
			if err != nil {
				_ = os.Remove(file + ".new") // the compiler may not have written it
				return err
			}
			fmt.Fprintf(b.progress, "built %s in %d s\n", p.name, int(time.Since(began).Seconds()))
			return os.Rename(file+".new", file)
		}
	}
}

// download makes setup-envtest download etcd and kube-apiserver, of the minor version of
// kubernetesVersion, and returns their folder inside into.
func download(ctx context.Context, root, index, into string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	minor := strings.TrimPrefix(kubernetesVersion[:strings.LastIndexByte(kubernetesVersion, '.')], "v")
	return run(ctx, root, "tool", "-modfile=hack/tools/setup-envtest/go.mod", "setup-envtest",
		"use", minor+".x", "--index", index, "--bin-dir", into, "--print", "path")
}

// compile builds a program with the go command, in the module that pins its version.
func compile(ctx context.Context, root string, p program, file string) error {
	// Without these flags Kubernetes reports version v0.0.0, and clients disable features
	// that such a version would lack.
	number := strings.Split(strings.TrimPrefix(p.version, "v"), ".")
	const stamp = "-X k8s.io/component-base/version."
	flags := "-s -w " + stamp + "gitVersion=" + p.version + " " + stamp + "gitMajor=" + number[0] + " " + stamp + "gitMinor=" + number[1]
	_, err := run(ctx, filepath.Join(root, "hack", "apiserver", p.module), "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", file, p.pkg)
	if err != nil {
		err = fmt.Errorf("%w (the first build downloads modules: check that the module proxy, GOPROXY, answers)", err)
	}
	return err
}

func run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // on an interrupt, go also ends its compilers
	cmd.WaitDelay = 10 * time.Second
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w: %s", strings.Join(args, " "), dir, err, lastLines(errs.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// ModuleRoot returns the repository's folder, which is the working directory or above it.
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

// lastLines returns the last lines of an output, for an error message.
func lastLines(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], " | ")
}
