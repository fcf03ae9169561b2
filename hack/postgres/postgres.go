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
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/filelock"
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

	readyTimeout = time.Minute
	pollInterval = 25 * time.Millisecond
)

// Options says where a server keeps its state and how safe it is.
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
	// Log receives a line for each slow or surprising thing that Start does,
	// such as an installation or another folder than the one asked for. Nil
	// discards them.
	Log io.Writer
}

// Server is a running, or stopped and restartable, private PostgreSQL server.
// Its methods, apart from URL, must not be called concurrently.
type Server struct {
	bin        string // folder of initdb and postgres
	account    *account
	dir        string
	socketDir  string
	fastUnsafe bool
	log        io.Writer

	lock *os.File
	proc *process
}

// Start finds PostgreSQL (installing it when root on Debian or Ubuntu),
// creates the database cluster unless DataDir already holds one, starts the
// server and returns when it accepts connections. A server that a killed
// earlier run left on the same folder is stopped first; one that a living run
// still uses is an error. The server ends when this process does, on Linux
// however it ends; ctx bounds only the start.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.DataDir == "" {
		return nil, errors.New("start postgres: Options.DataDir is empty; name a folder for the server's state")
	}
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	requested, err := filepath.Abs(opts.DataDir)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	installed, err := thisMachine(opts.Log).find(ctx)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	acct, err := accountFor(os.Geteuid())
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	dir, err := acct.prepareDir(ctx, requested, opts.Log)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	s := &Server{account: acct, dir: dir, socketDir: socketDir(dir), fastUnsafe: opts.FastUnsafe, log: opts.Log}
	if s.bin, err = choose(ctx, installed, s.clusterDir()); err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	return s, nil
}

// URL is the address of a database of this server for pgx and libpq. It stays
// the same over Restart. The database "postgres" always exists; others come
// from CreateDatabase.
func (s *Server) URL(database string) string { return addressOf(s.socketDir, database) }

// addressOf is the address of a database of the server with that socket.
func addressOf(socketDir, database string) string {
	query := url.Values{"host": {socketDir}, "port": {strconv.Itoa(port)}}.Encode()
	u := url.URL{
		Scheme: "postgres",
		User:   url.User(superuser),
		Path:   "/" + database,
		// libpq does not read a plus sign as a space.
		RawQuery: strings.ReplaceAll(query, "+", "%20"),
	}
	return u.String()
}

// CreateDatabase creates the database unless it exists.
func (s *Server) CreateDatabase(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var exists bool
	const query = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"
	if err := conn.QueryRow(ctx, query, name).Scan(&exists); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// Dir is the folder that holds the server's state: Options.DataDir, or its
// replacement when the server's user can not reach that.
func (s *Server) Dir() string { return s.dir }

// Pid is the process id of the server's first process, 0 when it is stopped.
func (s *Server) Pid() int {
	if s.proc == nil {
		return 0
	}
	return s.proc.pid
}

// Stop shuts the server down fast: clients are disconnected, open
// transactions rolled back, committed data flushed. When that takes more than
// 20 seconds, or ctx ends, it goes on to an immediate shutdown and then a
// kill, after which the next start recovers from the write-ahead log. It
// returns an error only when the server did not end by itself. Stopping a
// stopped server does nothing.
func (s *Server) Stop(ctx context.Context) error {
	if s.lock == nil {
		return nil
	}
	var err error
	if s.proc != nil {
		err = s.proc.stop(ctx)
		s.proc = nil
	}
	err = errors.Join(err, filelock.Release(s.lock))
	s.lock = nil
	if err != nil {
		return fmt.Errorf("stop postgres: %w", err)
	}
	return nil
}

// Restart stops the server when it runs and starts it again on the same data
// and the same socket.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return fmt.Errorf("restart postgres: %w", err)
	}
	return nil
}

// clusterDir is PostgreSQL's own data directory.
func (s *Server) clusterDir() string { return filepath.Join(s.dir, "data") }

func (s *Server) logPath() string { return filepath.Join(s.dir, "postgres.log") }

// start takes the folder's lock, clears what an earlier run left, creates the
// cluster when there is none and launches the server.
func (s *Server) start(ctx context.Context) (err error) {
	if s.lock, err = lockDir(s.dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if err := stopLeftover(ctx, s.clusterDir(), s.log); err != nil {
		return err
	}
	if err := s.initialise(ctx); err != nil {
		return err
	}
	if err := s.account.makePrivate(s.socketDir); err != nil {
		return err
	}
	return s.launch(ctx)
}

// socketDir is the socket's folder: inside the state folder, or in /tmp, under
// a name that every start on the same folder finds again, when that path is
// too long for a socket. /tmp rather than TMPDIR, which may be as long.
func socketDir(dir string) string {
	inside := filepath.Join(dir, "socket")
	if len(filepath.Join(inside, ".s.PGSQL."+strconv.Itoa(port))) <= maxSocketPath {
		return inside
	}
	return filepath.Join("/tmp", tempName(dir))
}

// tempName is the name in a folder for temporary files that stands for dir.
func tempName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "relaypool-postgres-" + hex.EncodeToString(sum[:8])
}
