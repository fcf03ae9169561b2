// Package postgres runs a private PostgreSQL server from the machine's own
// binaries, for `make run` and for tests. The server listens on a Unix socket
// in a folder that only its own user can enter, never on a network address.
//
// PostgreSQL refuses to run as root, so a server started by root runs as the
// user postgres, or nobody where there is none.
package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/relaypool/relaypool/hack/process"
)

const (
	// superuser is the role that initdb creates and that URL names.
	superuser = "relaypool"
	// port names the socket file (.s.PGSQL.5432); nothing listens on TCP.
	port = 5432
	// maxSocketPath is the length of sun_path without its final zero byte on
	// the systems with the shortest one (104 bytes on macOS and the BSDs, 108
	// on Linux).
	maxSocketPath = 103
)

// Options are the folder of a server's state and its durability.
type Options struct {
	// DataDir is the folder for everything of this server: the database
	// cluster in data/, the lock file, the log postgres.log and, when the path
	// is short enough, the socket. It is made when missing and must be used
	// for nothing else. Required.
	DataDir string
	// FastUnsafe turns fsync, synchronous commits and full-page writes off: a
	// power cut may lose or corrupt the data, a kill of the server does not.
	// For tests.
	FastUnsafe bool
	// Log receives a line for each slow or surprising action of Start, such as an
	// installation or the use of another folder than DataDir. Nil discards them.
	Log io.Writer
}

// Server is a running, or stopped and restartable, private PostgreSQL server.
// Its methods, apart from URL, must not be called concurrently.
type Server struct {
	bin        string // folder of initdb and postgres
	account    *account
	dir        string
	fastUnsafe bool

	lock *flock.Flock
	proc *process.Process
}

// Start finds PostgreSQL (installing it when root on Debian or Ubuntu), starts a server
// with an empty cluster and returns when it accepts connections. It stops a server and
// deletes data that an earlier run left in the folder; it fails when a living run uses
// the folder. The server ends when this process does, on Linux even if it is killed; ctx
// bounds only the start.
func Start(ctx context.Context, opts Options) (s *Server, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("start postgres: %w", err)
		}
	}()
	if opts.DataDir == "" {
		return nil, errors.New("Options.DataDir is empty; name a folder for the server's state")
	}
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	requested, err := filepath.Abs(opts.DataDir)
	if err != nil {
		return nil, err
	}
	bin, err := thisMachine(opts.Log).find(ctx)
	if err != nil {
		return nil, err
	}
	acct, err := accountFor(os.Geteuid())
	if err != nil {
		return nil, err
	}
	dir, err := acct.prepareDir(ctx, requested, opts.Log)
	if err != nil {
		return nil, err
	}
	s = &Server{bin: bin, account: acct, dir: dir, fastUnsafe: opts.FastUnsafe}
	if err := s.takeFolder(); err != nil {
		return nil, err
	}
	if err := s.create(ctx); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// create starts the server without the data of an earlier run.
func (s *Server) create(ctx context.Context) error {
	if err := s.stopLeftover(ctx); err != nil {
		return err
	}
	if err := s.initialise(ctx); err != nil {
		return err
	}
	return s.launch(ctx)
}

var errHeld = errors.New("its lock is held")

// takeFolder locks the folder for the life of this process: a lock that is taken means a
// living run.
func (s *Server) takeFolder() error {
	lock := flock.New(filepath.Join(s.dir, "lock"), flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW))
	free, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	if !free {
		return fmt.Errorf("another running process uses the PostgreSQL data in %s: stop that one first, or name another folder: %w", s.dir, errHeld)
	}
	s.lock = lock
	return nil
}

// URL is the address of a database of this server for pgx and libpq. It stays
// the same over Restart. The database "postgres" always exists.
func (s *Server) URL(database string) string {
	query := url.Values{"host": {s.socketDir()}, "port": {strconv.Itoa(port)}}.Encode()
	u := url.URL{
		Scheme: "postgres",
		User:   url.User(superuser),
		Path:   "/" + database,
		// libpq does not read a plus sign as a space.
		RawQuery: strings.ReplaceAll(query, "+", "%20"),
	}
	return u.String()
}

// Dir is the folder with the server's state: Options.DataDir, or its replacement when
// the server's user cannot reach that.
func (s *Server) Dir() string { return s.dir }

// Pid is the process id of the server's first process, 0 when it is stopped.
func (s *Server) Pid() int {
	if s.proc == nil {
		return 0
	}
	return s.proc.PID()
}

// Stop shuts the server down fast: clients are disconnected, open
// transactions rolled back, committed data flushed. When that takes more than
// 20 seconds, or ctx ends, it goes on to an immediate shutdown and then a
// kill, after which the next Restart recovers from the write-ahead log. It
// returns an error only when the server did not end by itself. Stopping a
// stopped server does nothing. The folder stays taken until Close, so that
// Restart finds the data.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.shutDown(ctx); err != nil {
		return fmt.Errorf("stop postgres: %w", err)
	}
	return nil
}

// Close stops the server for good: another Start may use the folder.
func (s *Server) Close(ctx context.Context) error {
	return errors.Join(s.Stop(ctx), s.lock.Unlock())
}

// Restart stops the server when it runs and starts it again on the same data
// and the same socket.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	if err := s.launch(ctx); err != nil {
		return fmt.Errorf("restart postgres: %w", errors.Join(err, s.Stop(context.WithoutCancel(ctx))))
	}
	return nil
}

// clusterDir is PostgreSQL's own data directory.
func (s *Server) clusterDir() string { return filepath.Join(s.dir, "data") }

// socketDir is the socket's folder: inside the state folder, or, when that path is too
// long for a socket, in /tmp, under a name that every start on the same folder finds
// again. It does not use TMPDIR, which may be as long.
func (s *Server) socketDir() string {
	inside := filepath.Join(s.dir, "socket")
	if len(filepath.Join(inside, ".s.PGSQL."+strconv.Itoa(port))) <= maxSocketPath {
		return inside
	}
	return filepath.Join("/tmp", tempName(s.dir))
}

// tempName is the name in a folder for temporary files that replaces dir.
func tempName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "relaypool-postgres-" + hex.EncodeToString(sum[:8])
}
