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
	"syscall"
	"time"
)

// The releases that the modules in kubernetes/ and etcd/ pin. A test holds
// both places together.
const (
	kubernetesVersion = "v1.36.3"
	etcdVersion       = "v3.6.0"
)

// The programs, by the names of their files.
const (
	etcdProgram              = "etcd"
	apiServerProgram         = "kube-apiserver"
	controllerManagerProgram = "kube-controller-manager"
)

// assetsVariable names a folder with etcd and kube-apiserver, as it does for
// everything that tests with controller-runtime.
const assetsVariable = "KUBEBUILDER_ASSETS"

// Binaries are the programs' files, by the names of the programs.
type Binaries map[string]string

const (
	modulePath = "github.com/relaypool/relaypool"
	// progressInterval is how often a build says that it still goes on.
	progressInterval = 10 * time.Second
	lockPoll         = 100 * time.Millisecond
)

// program is one binary and what it is built from.
type program struct {
	name    string
	module  string // folder below hack/apiserver
	pkg     string
	version string
}

// programs lists what a server needs, in the order of their start.
func programs(controllers bool) []program {
	list := []program{
		{etcdProgram, "etcd", "go.etcd.io/etcd/server/v3", etcdVersion},
		{apiServerProgram, "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", kubernetesVersion},
	}
	if controllers {
		list = append(list, program{controllerManagerProgram, "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", kubernetesVersion})
	}
	return list
}

// EnsureBinaries returns etcd and kube-apiserver, and kube-controller-manager
// when controllers is set: those in the folder of KUBEBUILDER_ASSETS where that is
// set; else those in the user's cache folder, where setup-envtest puts the first
// two when its downloads are reached, and all that is still missing is built from
// source. That takes some minutes and 2 GB of memory; progress receives what is
// being built and, every ten seconds, for how long. Processes that ask at once
// wait for one of them. It needs the go command and the module proxy, and must be
// called from within the repository; the error says which of them is missing.
func EnsureBinaries(ctx context.Context, progress io.Writer, controllers bool) (Binaries, error) {
	found, wanted, err := given(os.Getenv(assetsVariable), programs(controllers))
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the API server's binaries: %w: set HOME or XDG_CACHE_HOME", err)
	}
	name := fmt.Sprintf("kubernetes-%s_etcd-%s_%s_%s_%s", kubernetesVersion, etcdVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	dir := filepath.Join(cache, "relaypool", "apiserver", name)
	b := builder{dir: dir, progress: progress, run: runBuild, fetch: func(ctx context.Context) (string, error) {
		return downloaded(ctx, releasesIndex, dir)
	}}
	if err := b.ensure(ctx, wanted); err != nil {
		return nil, fmt.Errorf("make the API server's binaries: %w", err)
	}
	for _, p := range wanted {
		found[p.name] = filepath.Join(dir, p.name)
	}
	return found, nil
}

// given finds programs in a folder that somebody named, or nobody, and lists what
// is still wanted: controllers may be, since no such folder has them by itself.
func given(folder string, list []program) (found Binaries, wanted []program, err error) {
	found = Binaries{}
	if folder == "" {
		return found, list, nil
	}
	for _, p := range list {
		file := filepath.Join(folder, p.name)
		_, err := os.Stat(file) //nolint:gosec // the folder is the developer's own choice
		switch {
		case err == nil:
			found[p.name] = file
		case p.name == controllerManagerProgram:
			wanted = append(wanted, p)
		default:
			return nil, nil, fmt.Errorf("%s is set, but its folder has no %s: %w; correct it, or unset it to have the programs downloaded or built", assetsVariable, p.name, err)
		}
	}
	return found, wanted, nil
}

// builder fills one folder with programs.
type builder struct {
	dir      string
	progress io.Writer
	// fetch downloads some of them, in place of a build, and gives their folder; nil
	// where nothing is downloaded.
	fetch func(ctx context.Context) (string, error)
	// run builds the program into the file.
	run func(ctx context.Context, p program, file string) error
}

func (b builder) ensure(ctx context.Context, list []program) error {
	if len(b.missing(list)) == 0 {
		return nil
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil { //nolint:gosec // G301: programs for anybody to run, as in any cache of builds
		return err
	}
	lock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	// The kernel frees the lock with the file.
	defer func() { _ = lock.Close() }()
	b.download(ctx, list)
	for _, p := range b.missing(list) { // again: another process may have built them while we waited
		if err := b.build(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// download takes what is missing from where it is ready, if anything is.
func (b builder) download(ctx context.Context, list []program) {
	missing := b.missing(list)
	if b.fetch == nil || len(missing) == 0 || len(missing) == 1 && missing[0].name == controllerManagerProgram {
		return
	}
	folder, err := b.fetch(ctx)
	if err != nil {
		fmt.Fprintf(b.progress, "no download of the API server (%v): it is built from source\n", err)
		return
	}
	for _, p := range missing {
		file := filepath.Join(folder, p.name)
		if _, err := os.Stat(file); err != nil {
			continue // it is built
		}
		if err := os.Symlink(file, filepath.Join(b.dir, p.name)); err != nil {
			fmt.Fprintf(b.progress, "use the downloaded %s: %v: it is built from source\n", p.name, err)
			continue
		}
		fmt.Fprintf(b.progress, "downloaded %s\n", p.name)
	}
}

func (b builder) missing(list []program) []program {
	var missing []program
	for _, p := range list {
		if _, err := os.Stat(filepath.Join(b.dir, p.name)); err != nil {
			missing = append(missing, p)
		}
	}
	return missing
}

// lock waits until no other process builds into the folder.
func (b builder) lock(ctx context.Context) (*os.File, error) {
	path := filepath.Join(b.dir, "lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	said := began
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		if time.Since(said) > progressInterval {
			said = time.Now()
			fmt.Fprintf(b.progress, "waiting for another process that builds into %s: %d s so far\n", b.dir, int(time.Since(began).Seconds()))
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for another process that builds into %s: %w", b.dir, ctx.Err()), file.Close())
		case <-time.After(lockPoll):
		}
	}
}

// build writes beside the file's place and renames, so that whoever finds the
// file has a whole one.
func (b builder) build(ctx context.Context, p program) error {
	began := time.Now()
	fmt.Fprintf(b.progress, "building %s %s, once, which takes some minutes\n", p.name, p.version)
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				fmt.Fprintf(b.progress, "building %s: %d s so far\n", p.name, int(time.Since(began).Seconds()))
			}
		}
	}()
	fresh := filepath.Join(b.dir, p.name+".new")
	err := b.run(ctx, p, fresh)
	close(stop)
	<-stopped
	if err != nil {
		return errors.Join(err, removeIfThere(fresh))
	}
	if err := os.Rename(fresh, filepath.Join(b.dir, p.name)); err != nil {
		return err
	}
	fmt.Fprintf(b.progress, "built %s in %d s\n", p.name, int(time.Since(began).Seconds()))
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// runBuild has the go command build in the module that pins the program.
func runBuild(ctx context.Context, p program, file string) error {
	root, err := ModuleRoot()
	if err != nil {
		return err
	}
	// A Kubernetes without its version calls itself v0.0.0, and clients that
	// look at it disable what they believe it cannot do.
	number := strings.Split(strings.TrimPrefix(kubernetesVersion, "v"), ".")
	const stamp = "-X k8s.io/component-base/version."
	flags := "-s -w " + stamp + "gitVersion=" + kubernetesVersion + " " + stamp + "gitMajor=" + number[0] + " " + stamp + "gitMinor=" + number[1]
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", file, p.pkg)
	cmd.Dir = filepath.Join(root, "hack", "apiserver", p.module)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go then ends its compilers too
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("the go command is not on PATH: install Go, or add its folder to PATH")
	}
	if err != nil {
		return fmt.Errorf("go build %s in %s: %w: %s (the first build downloads modules: the module proxy, GOPROXY, has to answer)", p.pkg, cmd.Dir, err, lastLines(string(out)))
	}
	return nil
}

// ModuleRoot is the repository's folder, found upwards from the working
// directory, which for a test is its package's.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+modulePath+"\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the repository: neither %s nor a folder above it has the go.mod of %s: run inside a clone of it", start, modulePath)
		}
	}
}

// lastLines is the end of an output, short enough for an error message.
func lastLines(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], " | ")
}
