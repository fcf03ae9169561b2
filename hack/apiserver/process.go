package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is one running program.
type process struct {
	name   string
	pid    int
	log    string           // path
	exited chan struct{}    // closed when it has ended and been reaped
	state  *os.ProcessState // how it ended; read after exited
}

// start runs the program with its output in a file of its own. The program
// ends when we do, however we end, where the system can do that.
func start(dir, file string, args ...string) (*process, error) {
	name := filepath.Base(file)
	p := &process{name: name, log: filepath.Join(dir, name+".log"), exited: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = log.Close() }()         // the child has its own
	cmd := exec.Command(file, args...)         //nolint:noctx // it outlives the start's context; stop ends it
	cmd.Dir = dir                              // whatever it writes beside the data is deleted with it
	cmd.Env = []string{"PATH=", "HOME=" + dir} // none of the caller's proxies, kubeconfig or ETCD_ variables
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()
	started := make(chan error)
	go func() {
		// The kernel sends the parent-death signal when the thread that started
		// the child ends, and Go ends idle threads at will.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // its error repeats the state
		p.state = cmd.ProcessState
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.pid = cmd.Process.Pid
	return p, nil
}

// kill ends the process at once and waits for its end. Ending one that has
// ended does nothing.
func (p *process) kill() error {
	select {
	case <-p.exited: // reaped: the id may already be somebody else's
		return nil
	default:
	}
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end %s (process %d): %w", p.name, p.pid, err)
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(time.Minute):
		return fmt.Errorf("end %s (process %d): it is still there a minute after a kill", p.name, p.pid)
	}
}

// await asks until ready succeeds, the process has ended or ctx has.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended before it was ready (%s); the end of its log: %s", p.name, p.state, p.logEnd())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; the end of its log: %s", p.name, errors.Join(ctx.Err(), err), p.logEnd())
		case <-time.After(pollInterval):
		}
	}
}

func (p *process) logEnd() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text))
}

// portOf is the port of an address.
func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
