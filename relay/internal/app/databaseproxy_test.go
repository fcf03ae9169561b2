package app

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// databaseProxy is between a relay and Postgres, so that a test can cut the connection.
type databaseProxy struct {
	t        *testing.T
	listener net.Listener
	server   string // the server's socket
	mu       sync.Mutex
	cut      bool
	open     map[net.Conn]bool
	serving  sync.WaitGroup
}

// newDatabaseProxy returns a proxy for the server of a database URL, and the URL through it.
func newDatabaseProxy(t *testing.T, database string) (p *databaseProxy, proxiedURL string) {
	t.Helper()
	u, err := url.Parse(database)
	must(t, err)
	query := u.Query()
	name := ".s.PGSQL." + query.Get("port")
	p = &databaseProxy{t: t, server: filepath.Join(query.Get("host"), name), open: map[net.Conn]bool{}}
	dir := tempDir(t)
	p.listener, err = net.Listen("unix", filepath.Join(dir, name))
	must(t, err)
	p.serving.Go(p.serve)
	t.Cleanup(func() {
		_ = p.listener.Close() // this only ends the accept loop
		p.setCut(true)
		p.serving.Wait()
	})
	query.Set("host", dir)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // libpq reads no plus sign as a space
	return p, u.String()
}

func (p *databaseProxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.server)
		if err != nil || !p.track(client, server) {
			_ = client.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
			p.serving.Go(func() {
				_, _ = io.Copy(pair[0], pair[1]) // when one side ends, both end
				_, _ = client.Close(), server.Close()
			})
		}
	}
}

// track records connections. It closes them and returns false when the proxy is cut.
func (p *databaseProxy) track(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.cut {
			_ = c.Close()
			continue
		}
		p.open[c] = true
	}
	return !p.cut
}

// setCut closes all connections and refuses new ones, or accepts connections again.
func (p *databaseProxy) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	for c := range p.open {
		_ = c.Close()
	}
	clear(p.open)
}
