package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/hack/postgres"
)

const (
	templateTimeout = 2 * time.Minute
	dropAgain       = 50 * time.Millisecond
	objectInUse     = "55006"
)

// template is the test binary's migrated database, which tests get copies of.
var template struct {
	once  sync.Once
	name  string
	clone string // the statement that copies it, up to its name
	err   error
}

// Migrated is a pool of connections to a database of this test's own, on which
// migrate has run. It runs once for the test binary, the tests get copies of what it
// made: migrating takes several times as long, and the migrations of all tests on
// one server wait for each other. So migrate, which is store.Migrate, has to be the
// same in all calls. Pool and database end with the test.
func Migrated(t testing.TB, migrate func(context.Context, *pgxpool.Pool, *slog.Logger) error) *pgxpool.Pool {
	t.Helper()
	base := baseURL(t)
	template.once.Do(func() { template.err = makeTemplate(base, migrate) })
	if template.err != nil {
		t.Fatalf("pgtest: make the migrated database: %v", template.err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	if err := execute(t.Context(), base, fmt.Sprintf(template.clone, name)); err != nil {
		t.Fatalf("pgtest: copy the migrated database: %v", err)
	}
	t.Cleanup(func() {
		if err := dropDatabase(base, name); err != nil {
			t.Errorf("pgtest: drop the test's database (did the test leave a connection open?): %v", err)
		}
	})
	address, err := ofDatabase(base, name)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return poolOf(t, address)
}

// makeTemplate migrates a new database.
func makeTemplate(base string, migrate func(context.Context, *pgxpool.Pool, *slog.Logger) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), templateTimeout)
	defer cancel()
	name := "template_" + strings.ToLower(rand.Text())
	conn, err := pgx.Connect(ctx, base)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return err
	}
	template.name, template.clone = name, "CREATE DATABASE %s TEMPLATE "+name
	var strategies bool
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int >= 150000").Scan(&strategies); err != nil {
		return err
	}
	if strategies { // copying files takes a third of the processor time of the default, which logs each page
		template.clone += " STRATEGY file_copy"
	}
	address, err := ofDatabase(base, name)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close() // a database with connections cannot be copied
	return migrate(ctx, pool, slog.New(slog.DiscardHandler))
}

// dropTemplate is for a server that outlives the test binary.
func dropTemplate() error {
	if template.name == "" {
		return nil
	}
	return dropDatabase(os.Getenv(postgres.TestURLVariable), template.name)
}

// dropDatabase waits for a while until the last connection has ended, which a
// server does after its client, and then ends those that are left and says so.
func dropDatabase(base, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	for {
		err := execute(ctx, base, "DROP DATABASE "+name)
		var refused *pgconn.PgError
		if err == nil || ctx.Err() == nil && (!errors.As(err, &refused) || refused.Code != objectInUse) {
			return err
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
			defer cancel()
			return errors.Join(err, execute(last, base, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"))
		case <-time.After(dropAgain):
		}
	}
}

// ofDatabase is the address of another database of the same server.
func ofDatabase(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", fmt.Errorf("%s is not a URL: expected postgres://user@host/database", postgres.TestURLVariable)
	}
	u.Path = "/" + name
	return u.String(), nil
}
