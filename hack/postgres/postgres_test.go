package postgres

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// parentVariable names an environment variable with a folder. If it is set, this test binary starts
// a server on the folder, prints the server's process id and waits until it is killed.
const parentVariable = "RELAYPOOL_POSTGRES_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentVariable); dir != "" {
		s, err := Start(context.Background(), Options{DataDir: dir, FastUnsafe: true, Log: os.Stderr})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(s.Pid())
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// stateDir makes a folder that the server's user can reach. It does not use t.TempDir, whose parent
// other users cannot enter.
func stateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "relaypool-pg-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // the server's user must enter it
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func start(t *testing.T, opts Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// query runs SQL on a new connection and returns the single value.
func query(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var value string
	if err := conn.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// execute runs SQL on a new connection.
func execute(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// writeRow commits a row, which wantRow later reads.
func writeRow(t *testing.T, s *Server) {
	t.Helper()
	execute(t, s.URL("postgres"), "CREATE TABLE IF NOT EXISTS kept (v text); INSERT INTO kept VALUES ('kept')")
}

func wantRow(t *testing.T, s *Server) {
	t.Helper()
	if got := query(t, s.URL("postgres"), "SELECT v FROM kept"); got != "kept" {
		t.Errorf("the row has %q, want kept", got)
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

func TestServerSettings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fastUnsafe bool
		wantSafety string
	}{
		"a server for make run keeps every commit": {fastUnsafe: false, wantSafety: "on"},
		"a server for tests is not durable":        {fastUnsafe: true, wantSafety: "off"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{DataDir: stateDir(t), FastUnsafe: tt.fastUnsafe})
			got := map[string]string{}
			for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes", "listen_addresses", "unix_socket_permissions", "log_error_verbosity"} {
				got[setting] = query(t, s.URL("postgres"), "SHOW "+setting)
			}
			want := map[string]string{
				"fsync": tt.wantSafety, "synchronous_commit": tt.wantSafety, "full_page_writes": tt.wantSafety,
				"listen_addresses": "", "unix_socket_permissions": "0700", "log_error_verbosity": "terse",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			info, err := os.Stat(s.socketDir())
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o700 {
				t.Errorf("the socket's folder has mode %v, want 0700", info.Mode().Perm())
			}
		})
	}
}

func TestServerRunsUnprivileged(t *testing.T) {
	t.Parallel()
	s := start(t, Options{DataDir: stateDir(t), FastUnsafe: true})
	info, err := os.Stat(filepath.Join(s.clusterDir(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid == 0 {
		t.Error("the server's files belong to root, want another user")
	}
}

func TestDataSurvives(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, s *Server){
		"a restart": func(t *testing.T, s *Server) {
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"a stop and a later restart": func(t *testing.T, s *Server) {
			if err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if conn, err := pgx.Connect(t.Context(), s.URL("postgres")); err == nil {
				_ = conn.Close(t.Context())
				t.Error("a stopped server accepts connections")
			}
			if s.Pid() != 0 {
				t.Errorf("a stopped server has the process id %d, want 0", s.Pid())
			}
			if err := s.Stop(t.Context()); err != nil {
				t.Errorf("stop a stopped server: error %v, want none", err)
			}
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"a kill of the server": func(t *testing.T, s *Server) {
			if err := syscall.Kill(s.Pid(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"a stop whose context has ended": func(t *testing.T, s *Server) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_ = s.Stop(ended) // an error if the server ended by an immediate shutdown
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, interrupt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{DataDir: stateDir(t)})
			writeRow(t, s)
			url, pid := s.URL("postgres"), s.Pid()
			interrupt(t, s)
			if s.Pid() == pid {
				t.Errorf("the process id is %d as before, want another", pid)
			}
			if s.URL("postgres") != url {
				t.Errorf("the URL changed from %s to %s, want the same", url, s.URL("postgres"))
			}
			wantRow(t, s)
		})
	}
}

func TestStartRefusesAFolderInUse(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	first := start(t, Options{DataDir: dir, FastUnsafe: true})
	refused := func() {
		_, err := Start(t.Context(), Options{DataDir: dir, FastUnsafe: true})
		if err == nil || !strings.Contains(err.Error(), "another running process uses the PostgreSQL data in "+dir) {
			t.Errorf("got error %v, want one that another process uses the folder", err)
		}
	}
	refused()
	query(t, first.URL("postgres"), "SELECT 'still here'")
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused() // the first server may still be restarted
}

// The test starts a server in a folder with the lock file of a killed server. Another process now
// has the process id in the lock file.
func TestStartReplacesTheLockFileOfAKilledServer(t *testing.T) {
	t.Parallel()
	another := start(t, Options{DataDir: stateDir(t), FastUnsafe: true})
	dir := stateDir(t)
	killed := start(t, Options{DataDir: dir, FastUnsafe: true})
	lockFile := filepath.Join(killed.socketDir(), fmt.Sprintf(".s.PGSQL.%d.lock", port))
	lines, err := os.ReadFile(lockFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(lines), "\n")
	if err := os.WriteFile(lockFile, fmt.Appendf(nil, "%d\n%s", another.Pid(), rest), 0o600); err != nil {
		t.Fatal(err)
	}
	query(t, start(t, Options{DataDir: dir, FastUnsafe: true}).URL("postgres"), "SELECT 'up'")
}

func TestStartReplacesALeftoverServerAndItsData(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	first := start(t, Options{DataDir: dir})
	writeRow(t, first)
	// On a system without a parent-death signal, a killed parent leaves a running server without a
	// lock.
	if err := first.lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	second := start(t, Options{DataDir: dir})
	waitFor(t, "the first server to end", func() bool { return first.proc.Ended() != nil })
	if got := query(t, second.URL("postgres"), "SELECT count(*)::text FROM pg_tables WHERE tablename = 'kept'"); got != "0" {
		t.Error("the second server has the first server's data, want an empty cluster")
	}
}

// The test kills a process that has started a server. The server must end, and another server must
// be able to use its folder at once.
func TestServerEndsWithItsKilledParent(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+dir)
	parent.Stderr = t.Output()
	stdin, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("read the server's process id: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	query(t, start(t, Options{DataDir: dir, FastUnsafe: true}).URL("postgres"), "SELECT 'up'")
	waitFor(t, "the server to end", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

func TestUnreachableFolderIsReplacedByATemporaryFolder(t *testing.T) {
	closed := t.TempDir() // its parent has mode 0700
	temp := stateDir(t)
	t.Setenv("TMPDIR", temp)
	requested := filepath.Join(closed, "state")
	var log bytes.Buffer
	s := start(t, Options{DataDir: requested, FastUnsafe: true, Log: &log})
	wantDir, wantLog := requested, ""
	if os.Geteuid() == 0 {
		wantDir = filepath.Join(temp, tempName(requested)+"-data")
		wantLog = fmt.Sprintf("The user %s, which PostgreSQL runs as, can not reach %s: the data is in %s instead\n", s.account.name, requested, wantDir)
	}
	if s.Dir() != wantDir || log.String() != wantLog {
		t.Errorf("the data is in %s and the log is %q, want %s and %q", s.Dir(), log.String(), wantDir, wantLog)
	}
}

func TestSocketOfALongPathIsInTmp(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(stateDir(t), strings.Repeat("long", 25))
	s := start(t, Options{DataDir: dir, FastUnsafe: true})
	t.Cleanup(func() { _ = os.RemoveAll(s.socketDir()) })
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	query(t, s.URL("postgres"), "SELECT 'up'")
	if s.Dir() != dir {
		t.Errorf("the data is in %s, want %s", s.Dir(), dir)
	}
}

func TestStartRefusesASymbolicLink(t *testing.T) {
	t.Parallel()
	target, dir := t.TempDir(), filepath.Join(stateDir(t), "link")
	if err := os.Symlink(target, dir); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{DataDir: dir})
	if err == nil || !strings.Contains(err.Error(), "is not a folder of this user") {
		t.Errorf("a symbolic link as folder: got error %v, want that it is not a folder of this user", err)
	}
}

func TestRestartErrorQuotesTheServersLog(t *testing.T) {
	t.Parallel()
	s := start(t, Options{DataDir: stateDir(t), FastUnsafe: true})
	conf, err := os.OpenFile(filepath.Join(s.clusterDir(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conf.WriteString("shared_buffers = 'no size'\n"); err != nil {
		t.Fatal(err)
	}
	if err := conf.Close(); err != nil {
		t.Fatal(err)
	}
	err = s.Restart(t.Context())
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "shared_buffers"`) {
		t.Errorf("got error %v, want one with PostgreSQL's message", err)
	}
}

func TestStartNeedsAFolder(t *testing.T) {
	t.Parallel()
	if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "Options.DataDir is empty") {
		t.Errorf("got error %v, want one that names the missing option", err)
	}
}
