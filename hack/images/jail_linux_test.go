package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// stepTimeout is the time limit for steps that take a moment on an idle machine.
const stepTimeout = 2 * time.Minute

// jail is a container for tests, without a container engine: the files of an image. Its
// processes run as the image's user and can access only these files.
type jail struct {
	root   string
	config v1.Config
	user   uint32
}

func newJail(t *testing.T, archive string) *jail {
	t.Helper()
	img := load(t, archive)
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	j := &jail{root: t.TempDir(), config: config.Config}
	if _, err := fmt.Sscanf(config.Config.User, "%d:", &j.user); err != nil || j.user == 0 {
		t.Fatalf("the image's user is %q, want the number of a user other than root", config.Config.User)
	}
	content := mutate.Extract(img)
	unpack(t, content, j.root)
	if err := content.Close(); err != nil {
		t.Fatal(err)
	}
	// A container engine mounts these.
	for _, folder := range []string{"dev", "dev/shm"} {
		j.makeWritable(t, folder)
	}
	if err := os.WriteFile(filepath.Join(j.root, "dev", "null"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(j.root, "dev", "null"), 0o666); err != nil {
		t.Fatal(err)
	}
	// The image's user must be able to enter the folders above root.
	for folder := j.root; folder != filepath.Dir(os.TempDir()) && folder != "/"; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			if err := os.Chmod(folder, info.Mode().Perm()|0o111); err != nil {
				t.Fatal(err)
			}
		}
	}
	return j
}

// makeWritable makes a folder that the image's user can write to, like an emptyDir.
func (j *jail) makeWritable(t *testing.T, folder string) {
	t.Helper()
	folder = filepath.Join(j.root, folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(folder, int(j.user), int(j.user)); err != nil {
			t.Fatal(err)
		}
	}
}

// process is a program in a jail.
type process struct {
	*testing.T
	cmd    *exec.Cmd
	output *outputBuffer
	ended  chan struct{}
	err    error // the result, set before ended is closed
}

// start starts the image's entry point with arguments, as a container engine does. The process
// is killed at the end of the test.
func (j *jail) start(t *testing.T, args ...string) *process {
	t.Helper()
	command := slices.Concat(j.config.Entrypoint, args)
	p := &process{T: t, cmd: exec.Command(command[0], command[1:]...), output: &outputBuffer{}, ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = j.config.WorkingDir, j.config.Env
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot: j.root, Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: j.user, Gid: j.user},
	}
	if os.Geteuid() != 0 { // other users need a user namespace for a chroot
		a := p.cmd.SysProcAttr
		a.Cloneflags, a.Credential.NoSetGroups = syscall.CLONE_NEWUSER, true
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: int(j.user), HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: int(j.user), HostID: os.Getgid(), Size: 1}}
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s in a chroot: %v; this needs root, or unprivileged user namespaces", command[0], err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
		if t.Failed() {
			t.Logf("%s printed:\n%s", command[0], p.output)
		}
	})
	return p
}

// stop sends the container's stop signal and requires that the process ends without an error.
func (p *process) stop(signal syscall.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(stepTimeout):
		p.Fatalf("the process still runs %s after %s, want its end", stepTimeout, signal)
	}
	if p.err != nil {
		p.Errorf("the process ended with %v after %s, want exit code 0", p.err, signal)
	}
}

// await waits until the condition that what describes is true.
func (p *process) await(what string, condition func() bool) {
	p.Helper()
	deadline := time.After(stepTimeout)
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if condition() {
			tick.Stop()
			return
		}
		select {
		case <-p.ended:
			p.Fatalf("the process ended with %v, want first that %s", p.err, what)
		case <-deadline:
			p.Fatalf("%s passed, want that %s", stepTimeout, what)
		case <-tick.C:
		}
	}
}

func (p *process) hasPrinted(text string) func() bool {
	return func() bool { return strings.Contains(p.output.String(), text) }
}

// outputBuffer collects the output of a process, and can be read while the process runs.
type outputBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *outputBuffer) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *outputBuffer) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
