// Package pgtest gives each test an empty Postgres schema on a shared server, or its own
// server, which the test may stop.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// The caller runs the migrations, so that the store's own tests can use pgtest.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/hack/postgres"
)

const (
	startTimeout   = 5 * time.Minute // includes installing Postgres
	cleanupTimeout = 30 * time.Second
	// poolSize keeps the parallel tests of the parallel test binaries below the server's 300
	// connections.
	poolSize = 10
	// testsPerProcessor is the number of parallel tests for each processor: tests mostly wait
	// for the local chain's slots and for Postgres.
	testsPerProcessor = 3
)

// Main runs the package's tests and exits with their code. It uses the server that
// RELAYPOOL_TEST_DATABASE_URL names, or starts and stops a private one. The tests read the
// server's address from the same variable.
func Main(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(strconv.Itoa(testsPerProcessor * runtime.GOMAXPROCS(0))) // it is a number, so Set cannot fail
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "pgtest: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if os.Getenv(postgres.TestURLVariable) != "" {
		return m.Run(), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	server, remove, err := postgres.StartTemp(ctx, os.Stderr)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, remove(context.Background())) }()
	if err := os.Setenv(postgres.TestURLVariable, server.URL("postgres")); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// URL creates a schema for this test and returns a database URL with that schema
// as its search_path. The schema is dropped after the test, which must have
// closed its connections by then.
func URL(t testing.TB) string {
	t.Helper()
	base := os.Getenv(postgres.TestURLVariable)
	if base == "" {
		t.Fatal("pgtest: no server: the package needs func TestMain(m *testing.M) { pgtest.Main(m) }")
	}
	schema := "test_" + strings.ToLower(rand.Text())
	if err := execute(t.Context(), base, "CREATE SCHEMA "+schema); err != nil {
		t.Fatalf("pgtest: create the test's schema: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		// Without lock_timeout, a transaction that the test left open would block
		// the whole run.
		if err := execute(ctx, base, "SET lock_timeout = '10s'; DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Errorf("pgtest: drop the test's schema (did the test leave a connection open?): %v", err)
		}
	})
	address, err := withSearchPath(base, schema)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return address
}

// Pool returns a pool of connections to URL(t), which is closed after the test.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(URL(t))
	if err != nil {
		t.Fatalf("pgtest: parse the database URL: %v", err)
	}
	config.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("pgtest: open a pool: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Server starts a server only for this test, which may stop, kill and restart the
// server. The server's empty database is "postgres".
func Server(t testing.TB) *postgres.Server {
	t.Helper()
	server, remove, err := postgres.StartTemp(t.Context(), t.Output())
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := remove(context.Background()); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return server
}

// execute runs SQL without parameters on a new connection.
func execute(ctx context.Context, address, sql string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// withSearchPath adds the schema to the address's options, in the form that pgx, libpq
// and psql all understand.
func withSearchPath(address, schema string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", fmt.Errorf("%s is not a URL: expected postgres://user@host/database", postgres.TestURLVariable)
	}
	query := u.Query()
	query.Set("options", strings.TrimSpace(query.Get("options")+" -c search_path="+schema))
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // libpq does not read a plus sign as a space
	return u.String(), nil
}
