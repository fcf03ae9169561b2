package store_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/hack/testca"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
)

const tlsCanary = "c4n4ryc4n4ry"

// tlsServer is a server that listens on TCP, at two addresses of its own. Its certificate is for
// the first.
type tlsServer struct {
	address, other string
	folder, socket string // socket is the URL without TCP
}

// startTLSServer starts a server with the lines of pg_hba.conf, and with ssl on or off.
func startTLSServer(t *testing.T, ssl string, authority *testca.Authority, access ...string) *tlsServer {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the port is always 5432, and only Linux has more than one loopback address")
	}
	server := pgtest.Server(t)
	b := make([]byte, 2)
	_, _ = rand.Read(b) // it never fails
	s := &tlsServer{
		address: fmt.Sprintf("127.77.%d.%d", b[0], 1+b[1]%250), other: fmt.Sprintf("127.78.%d.%d", b[0], 1+b[1]%250),
		folder: filepath.Join(server.Dir(), "data"), socket: server.URL("postgres"),
	}
	s.renew(t, authority)
	s.write(t, "pg_hba.conf", []byte("local all all trust\n"+strings.Join(access, "\n")+"\n"))
	server.Set("listen_addresses="+s.address+","+s.other, "ssl="+ssl, "ssl_cert_file=server.crt", "ssl_key_file=server.key", "ssl_ca_file=ca.crt")
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.exec(t, s.socket, store.TLSFiles{}, "ALTER ROLE relaypool PASSWORD '"+tlsCanary+"'"); err != nil {
		t.Fatal(err)
	}
	return s
}

// renew writes a certificate of the authority, for the server's first address, and makes it the
// authority of clients' certificates.
func (s *tlsServer) renew(t *testing.T, authority *testca.Authority) {
	t.Helper()
	certificate, key := authority.Issue(t, "server", s.address)
	s.write(t, "server.crt", certificate)
	s.write(t, "server.key", key)
	s.write(t, "ca.crt", authority.PEM)
}

// write writes a file that belongs to the server's user, as Postgres demands of its key.
func (s *tlsServer) write(t *testing.T, name string, content []byte) {
	t.Helper()
	path := filepath.Join(s.folder, name)
	testca.Write(t, path, content)
	info, err := os.Stat(s.folder)
	if err != nil {
		t.Fatal(err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}

// url is in the form in which CloudNativePG writes it.
func (s *tlsServer) url(host string) string {
	return "postgresql://relaypool:" + tlsCanary + "@" + host + ":5432/postgres"
}

// exec runs a statement that returns nothing, or a text, on a new connection.
func (s *tlsServer) exec(t *testing.T, url string, files store.TLSFiles, sql string) (text string, err error) {
	t.Helper()
	pool, err := store.Open(t.Context(), url, files, 1)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	return query(t, pool, sql)
}

func query(t *testing.T, pool *pgxpool.Pool, sql string) (text string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if !strings.HasPrefix(sql, "SELECT") {
		_, err = pool.Exec(ctx, sql)
		return "", err
	}
	err = pool.QueryRow(ctx, sql).Scan(&text)
	return text, err
}

// ownTLS says whether the connection has TLS, and whose certificate the client has.
const ownTLS = `SELECT ssl || ' ' || coalesce(client_dn, 'none') FROM pg_stat_ssl WHERE pid = pg_backend_pid()`

func TestConnectionsAreVerified(t *testing.T) {
	t.Parallel()
	right, wrong := testca.New(t), testca.New(t)
	with := startTLSServer(t, "on", right, "host all all all scram-sha-256")
	without := startTLSServer(t, "off", right, "host all all all scram-sha-256")
	ca, wrongCA := right.File(t), wrong.File(t)
	both := filepath.Join(t.TempDir(), "ca.crt")
	testca.Write(t, both, append(append([]byte{}, wrong.PEM...), right.PEM...))
	certificate, key := pairFiles(t, right, "relay")
	tests := map[string]struct {
		url   string
		files store.TLSFiles
		want  string // what the server knows of the connection, or a part of the error
	}{
		"the right authority":                             {with.url(with.address), store.TLSFiles{CA: ca}, "true none"},
		"the right authority among others":                {with.url(with.address), store.TLSFiles{CA: both}, "true none"},
		"sslmode=disable has no effect":                   {with.url(with.address) + "?sslmode=disable", store.TLSFiles{CA: ca}, "true none"},
		"sslmode=allow has no effect":                     {with.url(with.address) + "?sslmode=allow", store.TLSFiles{CA: ca}, "true none"},
		"a second host that is the first to answer":       {with.url("127.77.0.255:1," + with.address), store.TLSFiles{CA: ca}, "true none"},
		"a client certificate that the server can verify": {with.url(with.address), store.TLSFiles{CA: ca, ClientCert: certificate, ClientKey: key}, "true /CN=relay"},
		"a client certificate whatever sslcertmode says":  {with.url(with.address) + "?sslcertmode=disable", store.TLSFiles{CA: ca, ClientCert: certificate, ClientKey: key}, "true /CN=relay"},
		"the wrong authority":                             {with.url(with.address), store.TLSFiles{CA: wrongCA}, "certificate signed by unknown authority"},
		"the wrong authority with sslmode=require":        {with.url(with.address) + "?sslmode=require", store.TLSFiles{CA: wrongCA}, "certificate signed by unknown authority"},
		"a host that the certificate does not name":       {with.url(with.other), store.TLSFiles{CA: ca}, "certificate is valid for " + with.address + ", not " + with.other},
		"a client certificate without a CA file":          {with.url(with.address), store.TLSFiles{ClientCert: certificate, ClientKey: key}, "certificate signed by unknown authority"},
		"a server without TLS":                            {without.url(without.address), store.TLSFiles{CA: ca}, "server refused TLS connection"},
		"a server without TLS with sslmode=prefer":        {without.url(without.address) + "?sslmode=prefer", store.TLSFiles{CA: ca}, "server refused TLS connection"},
		"a missing CA file":                               {with.url(with.address), store.TLSFiles{CA: "/" + tlsCanary}, "read the database's ca file: file cannot be read"},
		"a client certificate without its key":            {with.url(with.address), store.TLSFiles{ClientCert: certificate}, "expected both or none"},
		"a Unix socket":                                   {"postgres://relaypool:" + tlsCanary + "@/postgres?host=/tmp", store.TLSFiles{CA: ca}, "a Unix socket has no TLS: expected a host name in the URL"},
		"no files leave TLS to the URL":                   {without.url(without.address), store.TLSFiles{}, "false none"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := with.exec(t, tc.url, tc.files, ownTLS)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tc.want) || err == nil && got != tc.want {
				t.Errorf("a connection gives %q, want %q", got, tc.want)
			}
			if strings.Contains(got, tlsCanary) {
				t.Errorf("the error contains a part of the URL: %s", got)
			}
		})
	}
}

func TestClientCertificateIsRequired(t *testing.T) {
	t.Parallel()
	right, wrong := testca.New(t), testca.New(t)
	s := startTLSServer(t, "on", right, "hostssl all all all cert")
	ca := right.File(t)
	tests := map[string]struct {
		issuer *testca.Authority // nil for no certificate
		name   string
		want   string
	}{
		"a certificate with the user's name": {right, "relaypool", "true /CN=relaypool"},
		"no certificate":                     {nil, "", "requires a valid client certificate"},
		"a certificate of another user":      {right, "somebody", "certificate authentication failed"},
		"a certificate of another authority": {wrong, "relaypool", "requires a valid client certificate"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := store.TLSFiles{CA: ca}
			if tc.issuer != nil {
				files.ClientCert, files.ClientKey = pairFiles(t, tc.issuer, tc.name)
			}
			got, err := s.exec(t, s.url(s.address), files, ownTLS)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tc.want) || strings.Contains(got, tlsCanary) {
				t.Errorf("a connection gives %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRenewedCertificatesNeedNoRestart(t *testing.T) {
	t.Parallel()
	first, second := testca.New(t), testca.New(t)
	s := startTLSServer(t, "on", first, "hostssl all all all cert")
	files := store.TLSFiles{CA: first.File(t)}
	files.ClientCert, files.ClientKey = pairFiles(t, first, "relaypool")
	pool, err := store.Open(t.Context(), s.url(s.address), files, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	reconnect := func() error {
		pool.Reset()
		_, err := query(t, pool, ownTLS)
		return err
	}
	if err := reconnect(); err != nil {
		t.Fatal(err)
	}

	s.renew(t, second)
	if _, err := s.exec(t, s.socket, store.TLSFiles{}, "SELECT pg_reload_conf()::text"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); reconnect() == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server's new certificate is trusted without its authority")
		}
	}
	certificate, key := second.Issue(t, "relaypool")
	for path, content := range map[string][]byte{files.CA: second.PEM, files.ClientCert: certificate, files.ClientKey: key} {
		testca.Write(t, path, content)
	}
	if err := reconnect(); err != nil {
		t.Errorf("after the files were replaced: %v", err)
	}

	if err := os.Rename(files.ClientKey, files.ClientKey+".gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := query(t, pool, ownTLS); err != nil {
		t.Errorf("the open connection fails: %v", err)
	}
	if err := reconnect(); !store.Unreachable(err) || !strings.Contains(err.Error(), "client key's file: file cannot be read") {
		t.Errorf("without the key's file the error is %v, want one that another try may solve", err)
	}
	testca.Write(t, files.ClientKey, key)
	if err := reconnect(); err != nil {
		t.Errorf("after the file came back: %v", err)
	}
}

// pairFiles writes a client's certificate and key to files.
func pairFiles(t *testing.T, issuer *testca.Authority, name string) (certificate, key string) {
	t.Helper()
	certificate, key = filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	pem, private := issuer.Issue(t, name)
	testca.Write(t, certificate, pem)
	testca.Write(t, key, private)
	return certificate, key
}
