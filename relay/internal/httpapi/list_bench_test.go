package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const benchLeaves = 1_000_000

// BenchmarkList reads the list of a million leaves from a real database, by real connections, and
// the same bytes as files from Debian's nginx, if that is installed.
func BenchmarkList(b *testing.B) {
	const page, tail = 100_000, 100
	relay, dir := serveMillion(b), b.TempDir()
	formats := map[string]http.Header{
		"json":   {"Accept-Encoding": {"identity"}},
		"zstd":   {"Accept-Encoding": {"zstd"}},
		"binary": {"Accept": {"application/octet-stream"}},
	}
	var nginx string
	if _, err := exec.LookPath("nginx"); err == nil {
		nginx = startNginx(b, dir)
	}
	for _, clients := range []int{1, 32} {
		for _, part := range []struct {
			name, format string
			from, leaves int
			unchanged    bool
		}{
			{"full/json", "json", 0, benchLeaves, false},
			{"full/zstd", "zstd", 0, benchLeaves, false},
			{"full/binary", "binary", 0, benchLeaves, false},
			{"tail/json", "json", benchLeaves - tail, tail, false},
			{"tail/zstd", "zstd", benchLeaves - tail, tail, false},
			{"304", "json", benchLeaves - tail, tail, true},
		} {
			var urls, files []string
			for from := part.from; from < part.from+part.leaves; from += page {
				query := fmt.Sprintf("?from_index=%d&limit=%d", from, min(part.leaves, page))
				urls = append(urls, relay+query)
				files = append(files, nginx+fmt.Sprintf("/%s.%d", part.format, from))
				save(b, filepath.Join(dir, fmt.Sprintf("%s.%d", part.format, from)), relay+query, formats[part.format])
			}
			name := fmt.Sprintf("%s/clients=%d/server=", part.name, clients)
			b.Run(name+"relay", func(b *testing.B) { read(b, clients, urls, formats[part.format], part.unchanged) })
			if nginx != "" {
				b.Run(name+"nginx", func(b *testing.B) { read(b, clients, files, formats[part.format], part.unchanged) })
			}
		}
	}
}

// read measures clients that read all of the URLs in turn.
func read(b *testing.B, clients int, urls []string, header http.Header, unchanged bool) {
	header = header.Clone()
	if unchanged {
		_, tag := fetch(b, http.DefaultClient, urls[0], header, io.Discard)
		header.Set("If-None-Match", tag)
	}
	var group sync.WaitGroup
	var bytes, lists atomic.Int64
	b.ResetTimer()
	for client := range clients {
		group.Go(func() {
			c, h := &http.Client{Transport: transport()}, header.Clone()
			defer c.CloseIdleConnections()
			h.Set("X-Real-IP", fmt.Sprintf("10.0.0.%d", client+1))
			for lists.Add(1) <= int64(b.N) {
				for _, url := range urls {
					size, _ := fetch(b, c, url, h, io.Discard)
					bytes.Add(size)
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(bytes.Load())/1e6/b.Elapsed().Seconds(), "MB/s")
}

func transport() *http.Transport {
	return &http.Transport{DisableCompression: true, ReadBufferSize: 64 << 10}
}

// fetch returns the size and the entity tag of an answer.
func fetch(b *testing.B, c *http.Client, url string, header http.Header, to io.Writer) (int64, string) {
	b.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		b.Error(err)
		return 0, ""
	}
	r.Header = header
	resp, err := c.Do(r)
	if err != nil {
		b.Error(err)
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	n, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{resp.Body}, make([]byte, 256<<10))
	want := http.StatusOK
	if header.Get("If-None-Match") != "" {
		want = http.StatusNotModified
	}
	if err != nil || resp.StatusCode != want {
		b.Errorf("%s is answered %d with %d bytes (%v), want %d", url, resp.StatusCode, n, err, want)
	}
	return n, resp.Header.Get("Etag")
}

// save writes an answer to a file.
func save(b *testing.B, path, url string, header http.Header) {
	b.Helper()
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	fetch(b, http.DefaultClient, url, header, file)
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
}

// serveMillion serves a million leaves, the last chunk partial, and returns the list's URL.
func serveMillion(b *testing.B) string {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), pgtest.Server(b).URL("postgres"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if err := store.Migrate(b.Context(), pool, slog.New(slog.DiscardHandler)); err != nil {
		b.Fatal(err)
	}
	address, random := shieldpool.Development().ProgramID, rand.NewChaCha8([32]byte{})
	i := 0
	_, err = pool.CopyFrom(b.Context(), pgx.Identifier{"commitments"}, []string{"pool", "leaf_index", "commitment", "slot"}, pgx.CopyFromFunc(func() ([]any, error) {
		if i == benchLeaves {
			return nil, nil
		}
		leaf := make([]byte, 32)
		_, _ = random.Read(leaf)
		i++
		return []any{address.Bytes(), i - 1, leaf, i / 2}, nil
	}))
	if err == nil {
		_, err = pool.Exec(b.Context(), `INSERT INTO commitment_index (pool, leaves, published, slot) VALUES ($1, $2, $2, $2)`, address.Bytes(), benchLeaves)
	}
	if err != nil {
		b.Fatal(err)
	}
	s, err := store.New(pool)
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + serveList(b, publishedLeaves(0), func(o *httpapi.Options) { o.Commitments = s.Commitments(address) }) + "/commitments"
}

// startNginx serves a directory's files, and returns their URL.
func startNginx(b *testing.B, dir string) string {
	b.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	config := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`daemon off; master_process on; user root; worker_processes 2; pid %s/pid; error_log stderr;
events { worker_connections 256; }
http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; server { listen %s; root %s; } }`, dir, address, dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	nginx := exec.CommandContext(context.Background(), "nginx", "-c", config)
	nginx.Stderr = b.Output()
	if err := nginx.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = nginx.Process.Signal(os.Interrupt); _ = nginx.Wait() })
	for range 100 {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return "http://" + address
}
