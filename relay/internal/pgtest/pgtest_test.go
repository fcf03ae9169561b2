package pgtest

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/hack/postgres"
)

func TestMain(m *testing.M) { Main(m) }

func TestPoolsUseSeparateSchemas(t *testing.T) {
	t.Parallel()
	first, second := Pool(t), Pool(t)
	for _, pool := range []*pgxpool.Pool{first, second} {
		// Each test has its own schema, so both can create the same table.
		if _, err := pool.Exec(t.Context(), "CREATE TABLE things (id int)"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := first.Exec(t.Context(), "INSERT INTO things VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := second.QueryRow(t.Context(), "SELECT count(*) FROM things").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if rows != 0 {
		t.Errorf("the second pool sees %d rows, want 0", rows)
	}
}

func TestSchemaIsDroppedAfterTheTest(t *testing.T) {
	t.Parallel()
	var schema string
	t.Run("a test", func(t *testing.T) {
		pool := Pool(t)
		if err := pool.QueryRow(t.Context(), "SELECT current_schema()").Scan(&schema); err != nil {
			t.Fatal(err)
		}
	})
	conn, err := pgx.Connect(t.Context(), os.Getenv(postgres.TestURLVariable))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var exists bool
	if err := conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", schema).Scan(&exists); err != nil {
		t.Fatal(err)
	}
	if schema == "" || exists {
		t.Errorf("schema %q exists after its test: %t, want false", schema, exists)
	}
}

func TestServerMayBeStopped(t *testing.T) {
	t.Parallel()
	server := Server(t)
	ping := func() error {
		return execute(t.Context(), server.URL("postgres"), "SELECT 1")
	}
	if err := ping(); err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ping(); err == nil {
		t.Error("the stopped server answers")
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ping(); err != nil {
		t.Error(err)
	}
}

func TestWithSearchPath(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		address   string
		want      string
		wantError bool
	}{
		"a plain address": {
			address: "postgres://me@/db?host=%2Frun%2Fpg",
			want:    "postgres://me@/db?host=%2Frun%2Fpg&options=-c%20search_path%3Dtest_x",
		},
		"an address with options keeps them": {
			address: "postgresql://me@host/db?options=-c%20work_mem%3D1MB",
			want:    "postgresql://me@host/db?options=-c%20work_mem%3D1MB%20-c%20search_path%3Dtest_x",
		},
		"a keyword address is refused": {address: "host=/run/pg dbname=db", wantError: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := withSearchPath(tt.address, "test_x")
			if got != tt.want || (err != nil) != tt.wantError {
				t.Errorf("got %q, error %v; want %q, and an error is expected: %t", got, err, tt.want, tt.wantError)
			}
		})
	}
}
