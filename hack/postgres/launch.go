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

// stopLeftover stops the server of a killed earlier run. On systems without a parent-death
// signal, such a server still runs on the socket. Only the server's user can enter the
// socket's folder, so no foreign server can answer there.
func (s *Server) stopLeftover(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return nil // no server runs
	}
	_ = conn.Close(ctx)
	if out, err := s.command(ctx, "pg_ctl", "stop", "--pgdata="+s.clusterDir(), "--mode=fast").CombinedOutput(); err != nil {
		return fmt.Errorf("stop the server that an earlier run left on %s: %w: %s", s.dir, err, out)
	}
	return nil
}

// initialise deletes the cluster and the socket's folder of an earlier run and creates an
// empty cluster. The socket's folder may have the lock file of a killed server. PostgreSQL
// does not start if a process with the id in that file exists, even a zombie.
func (s *Server) initialise(ctx context.Context) error {
	if err := errors.Join(os.RemoveAll(s.clusterDir()), os.RemoveAll(s.socketDir())); err != nil {
		return fmt.Errorf("create the cluster: %w", err)
	}
	cmd := s.command(ctx, "initdb", "--pgdata="+s.clusterDir(), "--username="+superuser, "--encoding=UTF8", "--locale=C",
		// No other user can enter the socket's folder, and nothing listens on TCP.
		"--auth-local=trust", "--auth-host=reject",
		// A crash during initdb does no harm, because the next Start creates a new cluster.
		"--no-sync")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("create the cluster: initdb: %w: %s", err, out)
	}
	return s.account.makePrivate(s.socketDir())
}

// command prepares a program of PostgreSQL to run as the server's user, with English messages
// and without the caller's PG* variables, which would change ports and folders.
func (s *Server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account.credential()}
	return cmd
}

// launch starts the server and waits until it accepts connections. It tries again if
// PostgreSQL refuses to start because processes of a killed server still use its shared
// memory.
func (s *Server) launch(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		// The server must not end with ctx, which limits only the start.
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
		// Without terse, a DETAIL line quotes the values of a violated key. Such values come
		// from requests and must not be logged.
		"log_error_verbosity=terse",
	}
	if s.fastUnsafe {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	}
	args := []string{"-D", s.clusterDir()}
	for _, setting := range append(settings, s.settings...) {
		args = append(args, "-c", setting)
	}
	return args
}

// awaitReady tries to connect until the server accepts a connection, or returns an error
// when it has ended.
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

// shutDown uses the shutdown modes of postgres(1) one after the other: fast, immediate, and
// then a kill. The end of ctx shortens only the wait for the fast mode.
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
