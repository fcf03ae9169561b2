package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestEndToEndImagesRun builds the images of the end-to-end suite with programs of this source, and
// that of Postgres, and runs each.
func TestEndToEndImagesRun(t *testing.T) {
	root, out := t.TempDir(), t.TempDir()
	checkout(t, root)
	for _, image := range []string{"localnet", "gate", "postgres"} {
		if err := run(t.Context(), []string{"e2e", "-root", root, "-out", out, "-only", image}, io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("localnet serves a chain with the development key", func(t *testing.T) {
		p := newJail(t, filepath.Join(out, "localnet.tar")).start(t, "-listen", "127.0.0.1:0", "-initialise")
		p.await("the chain is ready", p.hasPrinted("pool      initialised"))
		p.stop(syscall.SIGTERM)
	})
	t.Run("gate starts the suite's program", func(t *testing.T) {
		p := newJail(t, filepath.Join(out, "gate.tar")).start(t, "open", "sesame")
		<-p.ended
		if !strings.HasPrefix(p.output.String(), "gate: expected serve") {
			t.Errorf("gate prints %q, want the argument that it expects", p.output)
		}
	})
	t.Run("postgres serves a database", func(t *testing.T) { checkDatabase(t, newJail(t, filepath.Join(out, "postgres.tar"))) })
}

func checkDatabase(t *testing.T, j *jail) {
	const password, passwordFile, data = "correct horse", "secret/password", "var/lib/postgresql/data"
	for _, mounted := range []string{data, "var/run/postgresql", "tmp", filepath.Dir(passwordFile)} {
		j.makeWritable(t, mounted)
	}
	if err := os.WriteFile(filepath.Join(j.root, passwordFile), []byte(password+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// Such files are left by a container that was killed while it initialised the database.
	j.makeWritable(t, data+"/pgdata.new")
	if err := os.WriteFile(filepath.Join(j.root, data, "pgdata.new", "PG_VERSION"), []byte("15\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	j.config.Env = append(j.config.Env, "POSTGRES_PASSWORD_FILE=/"+passwordFile)
	args := []string{"-c", "listen_addresses=127.0.0.1", "-c", "port=" + strconv.Itoa(port)}

	p := j.start(t, args...)
	var conn *pgx.Conn
	p.await("the database accepts connections", func() (connected bool) {
		conn, connected = connect(t, port, password)
		return connected
	})
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 'a row' AS text"); err != nil {
		t.Fatal(err)
	}
	var refusal *pgconn.PgError
	if _, err := pgx.Connect(t.Context(), url(port, "a guess")); !errors.As(err, &refusal) || refusal.Code != "28P01" {
		t.Errorf("connect with another password: got error %v, want invalid password (28P01)", err)
	}
	// The connection stays open during the stop: clients must not delay the end of a pod.
	p.stop(signalOf(t, j.config.StopSignal))
	_ = conn.Close(context.WithoutCancel(t.Context())) // the server is gone

	p = j.start(t, args...)
	p.await("the database accepts connections again", func() (connected bool) {
		conn, connected = connect(t, port, password)
		return connected
	})
	var row, encoding, zone string
	if err := conn.QueryRow(t.Context(), "SELECT text, current_setting('server_encoding'), current_setting('TimeZone') FROM kept").Scan(&row, &encoding, &zone); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a row", "UTF8", "UTC"}, []string{row, encoding, zone}); diff != "" {
		t.Errorf("after a restart: row, encoding and time zone (-want +got):\n%s", diff)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	p.stop(signalOf(t, j.config.StopSignal))
	if strings.Contains(p.output.String(), password) {
		t.Error("the password is in the log")
	}
}

func signalOf(t *testing.T, name string) syscall.Signal {
	t.Helper()
	if name != "SIGINT" {
		t.Fatalf("the image's stop signal is %q, want SIGINT, which is Postgres' fast shutdown", name)
	}
	return syscall.SIGINT
}

func url(port int, password string) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=postgres password='%s' dbname=postgres sslmode=disable connect_timeout=60", port, password)
}

func connect(t *testing.T, port int, password string) (*pgx.Conn, bool) {
	conn, err := pgx.Connect(t.Context(), url(port, password))
	return conn, err == nil
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().(*net.TCPAddr).Port
}
