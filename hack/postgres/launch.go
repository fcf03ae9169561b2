package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/process"
)

const (
	readyTimeout = time.Minute
	pollInterval = 25 * time.Millisecond
)

// stopLeftover stops a server that a killed run left on our socket, on systems that do
// not end it with the run. Only our own user can enter the socket's folder, so a server
// that answers there is such a server.
func (s *Server) stopLeftover(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return nil // nothing answers
	}
	_ = conn.Close(ctx)
	if out, err := s.command(ctx, "pg_ctl", "stop", "--pgdata="+s.clusterDir(), "--mode=fast").CombinedOutput(); err != nil {
		return fmt.Errorf("stop the server that an earlier run left on %s: %w: %s", s.dir, err, out)
	}
	return nil
}

// initialise makes an empty cluster and deletes the one of an earlier run, with its
// socket: beside that, a killed server leaves a lock file with its process id, which
// PostgreSQL respects for as long as any process has that id, even one that waits to be
// reaped.
func (s *Server) initialise(ctx context.Context) error {
	if err := errors.Join(os.RemoveAll(s.clusterDir()), os.RemoveAll(s.socketDir())); err != nil {
		return fmt.Errorf("create the cluster: %w", err)
	}
	cmd := s.command(ctx, "initdb", "--pgdata="+s.clusterDir(), "--username="+superuser, "--encoding=UTF8", "--locale=C",
		// The socket's folder is closed to others, and nothing listens on TCP.
		"--auth-local=trust", "--auth-host=reject",
		// An interrupted initdb loses nothing, because the next Start makes a new cluster.
		"--no-sync")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("create the cluster: initdb: %w: %s", err, out)
	}
	return s.account.makePrivate(s.socketDir())
}

// command is one of PostgreSQL's programs as the server's user, with none of the
// caller's PG* variables, which would change ports and folders, and messages in
// English.
func (s *Server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account.credential()}
	return cmd
}

// launch starts the server and waits until it accepts connections. PostgreSQL refuses
// to start while processes of a killed server still have its memory, for a moment.
func (s *Server) launch(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		// The server outlives the start's context.
		cmd := s.command(context.WithoutCancel(ctx), "postgres", s.arguments()...)
		if s.proc, err = process.StartCommand("postgres", filepath.Join(s.dir, "postgres.log"), cmd); err != nil {
			return err
		}
		err := s.awaitReady(ctx)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "pre-existing shared memory block") {
			return err
		}
		time.Sleep(pollInterval)
	}
}

func (s *Server) arguments() []string {
	settings := []string{
		"listen_addresses=",
		fmt.Sprintf("port=%d", port),
		"unix_socket_directories=" + s.socketDir(),
		"unix_socket_permissions=0700",
		"max_connections=300",
		"timezone=UTC",
		"log_timezone=UTC",
		// A DETAIL line quotes the values of a violated key, which are the content of
		// requests and must not be logged.
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
		case <-s.proc.Exited():
			return s.proc.Ended()
		case <-ctx.Done():
			return fmt.Errorf("the server accepts no connections: %w", errors.Join(ctx.Err(), err))
		case <-time.After(pollInterval):
		}
	}
}

// shutDown uses the shutdown modes of postgres(1) in turn, the mildest first. The end of
// ctx shortens only the first one, because the others are the last resort.
func (s *Server) shutDown(ctx context.Context) error {
	p := s.proc
	if p == nil {
		return nil
	}
	s.proc = nil
	select {
	case <-p.Exited(): // the process id may already belong to another process
		return nil
	default:
	}
	hurry := ctx.Done()
	for _, mode := range []struct {
		signal syscall.Signal
		grace  time.Duration
	}{{syscall.SIGINT, 20 * time.Second}, {syscall.SIGQUIT, 5 * time.Second}} {
		if err := syscall.Kill(p.PID(), mode.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal the server: %w", err)
		}
		select {
		case <-p.Exited():
			if mode.signal != syscall.SIGINT {
				return errors.New("the server ended only by an immediate shutdown: the next start recovers its data")
			}
			return nil
		case <-hurry:
		case <-time.After(mode.grace):
		}
		hurry = nil
	}
	return errors.Join(errors.New("the server ended only by a kill: the next start recovers its data"), p.Kill())
}
