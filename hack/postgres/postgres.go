// Package postgres runs a private PostgreSQL server from the machine's installed binaries,
// for `make run` and for tests. The server listens on a Unix socket in a folder that only
// the server's user can enter, and on no network address.
//
// PostgreSQL refuses to run as root. A server that root starts therefore runs as the user
// postgres, or as nobody if there is no such user.
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
	// superuser is the role that initdb creates and that URL uses.
	superuser = "relaypool"
	// port is part of the socket file's name (.s.PGSQL.5432); nothing listens on TCP.
	port = 5432
	// maxSocketPath is the longest path of a socket in bytes, on the systems with the
	// shortest limit: sun_path has 104 bytes on macOS and the BSDs (108 on Linux), one
	// of them for the final zero.
	maxSocketPath = 103
)

// Options configure a server.
type Options struct {
	// DataDir is the folder for everything of this server: the database cluster in data/, the lock
	// file, the log postgres.log and, if the path is short enough, the socket. Start makes the
	// folder if it is missing. Use it for nothing else. Required.
	DataDir string
	// FastUnsafe turns off fsync, synchronous commits and full-page writes, for tests. A power cut
	// may then lose or corrupt the data; a kill of the server does not.
	FastUnsafe bool
	// Log receives a line for each slow or unexpected action of Start, such as an
	// installation or another folder in place of DataDir. Nil discards the lines.
	Log io.Writer
}

// Server is a private PostgreSQL server, running or stopped. Its methods, except URL, must not
// be called concurrently.
type Server struct {
	bin        string // folder of initdb and postgres
	account    *account
	dir        string
	fastUnsafe bool
	settings   []string

	lock *flock.Flock
	proc *process.Process
}

// Start finds PostgreSQL, starts a server with an empty cluster and returns when the server
// accepts connections. As root on Debian or Ubuntu it installs PostgreSQL if missing. It
// stops the server and deletes the data of an earlier run in the folder. It returns an error
// if another running process uses the folder. On Linux the server ends with this process, even
// if this process is killed. ctx limits only the start.
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
	if err := s.lockFolder(); err != nil {
		return nil, err
	}
	if err := s.create(ctx); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// create removes the server and data of an earlier run, and starts the server with an empty
// cluster.
func (s *Server) create(ctx context.Context) error {
	if err := s.stopLeftover(ctx); err != nil {
		return err
	}
	if err := s.initialise(ctx); err != nil {
		return err
	}
	return s.launch(ctx)
}

var errHeld = errors.New("another process holds its lock")

// lockFolder locks the folder until this process ends. It returns errHeld if another process
// holds the lock.
func (s *Server) lockFolder() error {
	lock := flock.New(filepath.Join(s.dir, "lock"), flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW))
	free, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	if !free {
		return fmt.Errorf("another running process uses the PostgreSQL data in %s: stop that process first, or name another folder: %w", s.dir, errHeld)
	}
	s.lock = lock
	return nil
}

// URL returns the URL of a database of this server, for pgx and libpq. Restart does not change
// the URL. The database "postgres" always exists.
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

// Dir returns the folder of the server's state: Options.DataDir, or another folder if the
// server's user cannot reach it.
func (s *Server) Dir() string { return s.dir }

// Pid returns the process id of the postmaster, or 0 if the server is stopped.
func (s *Server) Pid() int {
	if s.proc == nil {
		return 0
	}
	return s.proc.PID()
}

// Stop makes a fast shutdown: it disconnects clients, rolls back open transactions and flushes
// committed data. If that takes more than 20 seconds, or ctx ends, Stop makes an immediate shutdown
// and then a kill. It then returns an error, and the next Restart recovers from the write-ahead
// log. Stop does nothing for a stopped server. The folder stays locked until Close, so that Restart
// finds the data.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.shutDown(ctx); err != nil {
		return fmt.Errorf("stop postgres: %w", err)
	}
	return nil
}

// Close stops the server and unlocks the folder, which another Start may then use.
func (s *Server) Close(ctx context.Context) error {
	return errors.Join(s.Stop(ctx), s.lock.Unlock())
}

// Restart stops the server, if it runs, and starts it with the same data and the same socket.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	if err := s.launch(ctx); err != nil {
		return fmt.Errorf("restart postgres: %w", errors.Join(err, s.Stop(context.WithoutCancel(ctx))))
	}
	return nil
}

// Set adds settings such as ssl=on, which take effect with Restart.
func (s *Server) Set(settings ...string) { s.settings = append(s.settings, settings...) }

func (s *Server) clusterDir() string { return filepath.Join(s.dir, "data") }

// socketDir returns the socket's folder inside the state folder. If that path is too long for a
// socket, socketDir returns a folder in /tmp, which has the same name at every start with the
// state folder. It is not in TMPDIR, whose path may be too long as well.
func (s *Server) socketDir() string {
	inside := filepath.Join(s.dir, "socket")
	if len(filepath.Join(inside, ".s.PGSQL."+strconv.Itoa(port))) <= maxSocketPath {
		return inside
	}
	return filepath.Join("/tmp", tempName(s.dir))
}

// tempName returns the name of the temporary folder that replaces dir.
func tempName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "relaypool-postgres-" + hex.EncodeToString(sum[:8])
}
