// Package process runs child processes for packages that run relays and local chains in
// development. It signals a child only by its process id. On Linux no child outlives this process.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// killGrace is the time that a killed process has to end.
const killGrace = 5 * time.Second

// Process is a child process. It is signalled only by its process id, never by a name.
type Process struct {
	name, log string
	pid       int
	exited    chan struct{}    // closed when the child has ended and been reaped
	state     *os.ProcessState // how the child ended; read it after exited is closed
}

// Start starts a program and appends its output to the file log. name appears in errors.
// On Linux the kernel kills the child when this process ends, even by kill -9; see
// attributes. The child has this process's environment without RELAYPOOL_ variables.
func Start(name, log, program string, args ...string) (*Process, error) {
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // only programs built here are started; the caller ends them by Stop
	cmd.Env = OwnEnvironment(os.Environ())
	return StartCommand(name, log, cmd)
}

// StartCommand is Start for a command with its own folder, environment or user.
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
	// The kernel sends the parent-death signal when the thread that started the child ends, and Go
	// may end idle threads. The goroutine therefore keeps its thread until the child has ended.
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // ProcessState has the same information
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

// Log is the path of the log file.
func (p *Process) Log() string { return p.log }

// Exited is closed when the child has ended and been reaped.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// OwnEnvironment returns env without RELAYPOOL_ variables, which a relay reads as flags.
// Those variables are meant for the caller, not for its child.
func OwnEnvironment(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "RELAYPOOL_") })
}

// Ended is nil while the process runs. Afterwards it is an error that says how the process
// ended, with the end of the log.
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

// Stop sends SIGTERM. If the process still runs after grace, Stop kills it and returns an
// error. It does nothing for a nil process or a process that has ended.
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

// Kill sends SIGKILL and waits until the process has ended.
func (p *Process) Kill() error {
	ended, err := p.signal(syscall.SIGKILL, killGrace)
	if err == nil && !ended {
		err = fmt.Errorf("%s (process %d) did not end after SIGKILL", p.name, p.pid)
	}
	return err
}

// signal sends a signal and waits for the end of the process. ended is false when the
// process still runs after within.
func (p *Process) signal(signal syscall.Signal, within time.Duration) (ended bool, err error) {
	select {
	case <-p.exited: // the process id may already belong to another process
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

// lastLines returns the last ten lines of a log, indented, for an error message.
func lastLines(path string) string {
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return "  (the log cannot be read)"
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-10):], "\n  ")
}
