package postgres

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

	"github.com/jackc/pgx/v5"
)

// errMemoryInUse is PostgreSQL's refusal to start while processes of a killed
// server still hold its shared memory. They end by themselves within moments.
var errMemoryInUse = errors.New("processes of a killed server are still ending")

// process is one running postgres.
type process struct {
	pid    int
	exited chan struct{}    // closed when it has ended and been reaped
	state  *os.ProcessState // how it ended; read after exited
}

// initialise creates the cluster unless there is one. It works in a folder of
// its own and renames it, so that an interrupted initdb leaves no half cluster.
func (s *Server) initialise(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.clusterDir(), "PG_VERSION")); !errors.Is(err, os.ErrNotExist) {
		if err != nil {
			return fmt.Errorf("look at the cluster: %w", err)
		}
		return nil
	}
	fresh := s.clusterDir() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("create the cluster: %w", err)
	}
	args := []string{
		"--pgdata=" + fresh, "--username=" + superuser, "--encoding=UTF8", "--locale=C",
		// The socket's folder is closed to others, and nothing listens on TCP.
		"--auth-local=trust", "--auth-host=reject",
	}
	if s.fastUnsafe {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), args...)
	cmd.Dir = s.dir
	cmd.Env = s.environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account.credential()}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("create the cluster: initdb: %w: %s", err, lastLines(string(out)))
	}
	if err := os.Rename(fresh, s.clusterDir()); err != nil {
		return fmt.Errorf("create the cluster: %w", err)
	}
	return nil
}

// environment is the server's: none of the caller's PG* variables, which
// would change ports and folders, and messages in English.
func (s *Server) environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C", "TZ=UTC"}
}

// launch starts the server and waits until it accepts connections.
func (s *Server) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := s.launchOnce(ctx)
		if !errors.Is(err, errMemoryInUse) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pollInterval):
		}
	}
}

func (s *Server) launchOnce(ctx context.Context) error {
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("open the server's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("open the server's log: %w", err)
	}
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), s.arguments()...) //nolint:noctx // it outlives the start's context; stop ends it
	cmd.Dir = s.dir
	cmd.Env = s.environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = serverAttributes(s.account.credential())
	if s.proc, err = spawn(cmd); err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	if err = s.awaitReady(ctx); err == nil {
		return nil
	}
	proc := s.proc
	s.proc = nil
	if stopErr := proc.stop(ctx); stopErr != nil {
		return errors.Join(err, stopErr)
	}
	output := make([]byte, 1<<16)
	n, _ := log.ReadAt(output, begin)
	if strings.Contains(string(output[:n]), "pre-existing shared memory block") {
		return errMemoryInUse
	}
	return fmt.Errorf("%w; the end of %s: %s", err, s.logPath(), lastLines(string(output[:n])))
}

// arguments are given on the command line rather than in postgresql.conf, so
// that a cluster of an earlier version of this package gets them too.
func (s *Server) arguments() []string {
	settings := []string{
		"listen_addresses=",
		fmt.Sprintf("port=%d", port),
		"unix_socket_directories=" + s.socketDir,
		"unix_socket_permissions=0700",
		"max_connections=300",
		"timezone=UTC",
		"log_timezone=UTC",
		// A DETAIL line quotes the values of a violated key: the content of
		// requests, which is logged nowhere.
		"log_error_verbosity=terse",
	}
	if s.fastUnsafe {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	}
	args := []string{"-D", s.clusterDir()}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}

// awaitReady connects until the server answers or has ended.
func (s *Server) awaitReady(ctx context.Context) error {
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.proc.exited:
			return fmt.Errorf("the server ended before it accepted connections (%s)", s.proc.state)
		case <-ctx.Done():
			return fmt.Errorf("the server accepts no connections: %w", errors.Join(ctx.Err(), err))
		case <-time.After(pollInterval):
		}
	}
}

// spawn starts the command on a thread that lives as long as the process:
// the kernel sends the parent-death signal when the starting thread ends, and
// Go ends idle threads at will.
func spawn(cmd *exec.Cmd) (*process, error) {
	p := &process{exited: make(chan struct{})}
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
		return nil, err
	}
	p.pid = cmd.Process.Pid
	return p, nil
}

// The shutdown modes of postgres(1) by signal, mildest first, each with the
// time that it gets.
var shutdowns = []struct {
	signal syscall.Signal
	name   string
	grace  time.Duration
}{
	{syscall.SIGINT, "a fast shutdown", 20 * time.Second},
	{syscall.SIGQUIT, "an immediate shutdown", 5 * time.Second},
	{syscall.SIGKILL, "a kill", 5 * time.Second},
}

// stop goes through the shutdown modes until the process has ended. The end
// of ctx shortens the first one, never the others: they are what is left.
func (p *process) stop(ctx context.Context) error {
	return shutdown(ctx, func(sig syscall.Signal) error {
		select {
		case <-p.exited: // reaped: the id may already be somebody else's
			return os.ErrProcessDone
		default:
			return syscall.Kill(p.pid, sig)
		}
	}, p.exited)
}

// shutdown sends the signals, one after another, until exited is closed.
func shutdown(ctx context.Context, send func(syscall.Signal) error, exited <-chan struct{}) error {
	for i, mode := range shutdowns {
		if err := send(mode.signal); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal the server: %w", err)
		}
		var hurry <-chan struct{}
		if i == 0 {
			hurry = ctx.Done()
		}
		select {
		case <-exited:
			if i > 0 {
				return fmt.Errorf("the server ended only by %s: the next start recovers its data", mode.name)
			}
			return nil
		case <-hurry:
		case <-time.After(mode.grace):
		}
	}
	return errors.New("the server did not end, not even by a kill")
}

// lastLines is the end of an output, short enough for an error message.
func lastLines(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}
