// Package process runs child programs for development, for packages that drive relays and
// local chains. It signals children only by their process id, and leaves none
// behind.
package process

import (
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

// killGrace is how long a killed process may take to end.
const killGrace = 5 * time.Second

// Process is a child. It is signalled only by its process id, never by a name.
type Process struct {
	name, log string
	pid       int
	exited    chan struct{}    // closed when it has ended and been reaped
	state     *os.ProcessState // how it ended; read after exited
}

// Start starts a program and appends its output to the log file. The name is for errors.
// The child ends when this process does, even if it is killed; see attributes. The
// environment is passed on without variables that configure a relay.
func Start(name, log, program string, args ...string) (*Process, error) {
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // only programs built here are started; Stop ends them, in their order and with their grace
	cmd.Env = OwnEnvironment(os.Environ())
	return StartCommand(name, log, cmd)
}

// StartCommand is Start for a program with a folder, variables or a user of its own.
func StartCommand(name, log string, cmd *exec.Cmd) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = out.Close() }() // the child has its own descriptor
	cmd.Stdout, cmd.Stderr = out, out
	own := attributes()
	if cmd.SysProcAttr != nil {
		own.Credential = cmd.SysProcAttr.Credential
	}
	cmd.SysProcAttr = own
	p := &Process{name: name, log: log, exited: make(chan struct{})}
	// The kernel sends the parent-death signal when the thread that started the child
	// ends, and Go may end idle threads: this thread lives as long as the child.
	started := make(chan error)
	go func() {
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

// PID is the child's process id.
func (p *Process) PID() int { return p.pid }

// Log is the path of its log file.
func (p *Process) Log() string { return p.log }

// Exited is closed when the child has ended and been reaped.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// OwnEnvironment removes RELAYPOOL_ variables: they belong to another relay, and
// would set flags that we do not set.
func OwnEnvironment(env []string) []string {
	var own []string
	for _, v := range env {
		if !strings.HasPrefix(v, "RELAYPOOL_") {
			own = append(own, v)
		}
	}
	return own
}

// Ended is the error of a process that stopped by itself, with the end of its
// log: nil while it runs.
func (p *Process) Ended() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s ended by itself (%s); the end of %s:\n%s", p.name, p.state, p.log, lastLines(p.log))
	default:
		return nil
	}
}

// Succeeded reports whether the process has ended with exit code 0.
func (p *Process) Succeeded() bool {
	select {
	case <-p.exited:
		return p.state.Success()
	default:
		return false
	}
}

// Stop asks the process to end, and kills it after the grace period, which is an error.
// It does nothing for a process that never started or has ended.
func (p *Process) Stop(grace time.Duration) error {
	if p == nil {
		return nil
	}
	if ended, err := p.signal(syscall.SIGTERM, grace); ended || err != nil {
		return err
	}
	if err := p.Kill(); err != nil {
		return err
	}
	return fmt.Errorf("%s did not stop within %s and was killed; its log is %s", p.name, grace, p.log)
}

// Kill ends the process at once, like a loss of power, and waits until it has
// ended.
func (p *Process) Kill() error {
	ended, err := p.signal(syscall.SIGKILL, killGrace)
	if err == nil && !ended {
		err = fmt.Errorf("%s (process %d) did not end, not even by a kill", p.name, p.pid)
	}
	return err
}

// signal sends a signal and waits for the end; false when the process still runs.
func (p *Process) signal(signal syscall.Signal, within time.Duration) (ended bool, err error) {
	select {
	case <-p.exited: // reaped: the id may already be reused
		return true, nil
	default:
	}
	if err := syscall.Kill(p.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return false, fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.exited:
		return true, nil
	case <-time.After(within):
		return false, nil
	}
}

// lastLines returns the end of a log, indented, for an error message.
func lastLines(path string) string {
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return "  (the log cannot be read)"
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-10):], "\n  ")
}
