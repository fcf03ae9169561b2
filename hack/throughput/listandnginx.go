package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relaypool/relaypool/hack/throughput/report"
)

// turns is how often the relay and nginx take turns in a measurement of a window.
const turns = 4

// readersOf is a number of clients of one server, which keep their connections.
type readersOf struct {
	urls    []string
	header  http.Header
	want    int
	clients []*http.Client

	requests, bytes atomic.Int64
	took            time.Duration
}

// newReaders gives each client an address of its own, because the relay limits the lists of one.
func newReaders(clients int, urls []string, header http.Header) *readersOf {
	r := &readersOf{urls: urls, header: header, want: http.StatusOK}
	for n := range clients {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(n+1))}}
		r.clients = append(r.clients, &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableCompression: true, ReadBufferSize: 64 << 10}})
	}
	return r
}

// turn reads the URLs in turn for a while. Answers that have begun are read to their end.
func (r *readersOf) turn(ctx context.Context, d time.Duration) error {
	began, errs := time.Now(), make(chan error, len(r.clients))
	var running sync.WaitGroup
	for i, client := range r.clients {
		running.Go(func() {
			for n := i; time.Since(began) < d; n++ {
				if _, err := pull(ctx, client, r.urls[n%len(r.urls)], r.header, r.want, r); err != nil {
					errs <- err
					return
				}
				r.requests.Add(1)
			}
		})
	}
	running.Wait()
	r.took += time.Since(began)
	close(errs)
	return <-errs
}

// Write counts bytes.
func (r *readersOf) Write(p []byte) (int, error) {
	r.bytes.Add(int64(len(p)))
	return len(p), nil
}

func (r *readersOf) close() {
	for _, c := range r.clients {
		c.CloseIdleConnections()
	}
}

// askUnchanged makes the readers ask whether their answer has changed.
func (r *readersOf) askUnchanged(ctx context.Context) error {
	tag, err := pull(ctx, r.clients[0], r.urls[0], r.header, http.StatusOK, io.Discard)
	r.header, r.want = r.header.Clone(), http.StatusNotModified
	r.header.Set("If-None-Match", tag)
	return err
}

// compareWithNginx measures the relay's list beside the same bytes as files.
func (s *benchRun) compareWithNginx(ctx context.Context, nginx string) error {
	leaves := int(s.setup.SeedLeaves) //nolint:gosec // a million
	var ways []comparison
	for _, e := range encodings[:2] {
		var urls, files []string
		for from := 0; from < leaves; from += listPage {
			urls = append(urls, s.listURL(from, min(listPage, leaves-from)))
			files = append(files, fmt.Sprintf("%s/%s-%d", nginx, e.name, from))
		}
		for _, clients := range []int{1, 8, 32} {
			ways = append(ways, comparison{what: "Full list, " + e.name, clients: clients, aim: 0.8, header: e.header, urls: urls, files: files})
		}
	}
	for _, clients := range []int{1, 32} {
		for _, unchanged := range []bool{false, true} {
			tail := comparison{
				what: fmt.Sprintf("Tail of %d leaves", listTail), clients: clients, aim: 1, header: encodings[0].header, unchanged: unchanged,
				urls: []string{s.listURL(leaves-listTail, listTail)}, files: []string{nginx + "/tail"},
			}
			if unchanged {
				tail.what += ", unchanged (304)"
			}
			ways = append(ways, tail)
		}
	}
	s.report.Note("The list beside nginx: Debian's, with the same bytes as files, sendfile and as many workers as cores; it and the relay take turns, %d each, with the same clients on kept connections, who discard what they read on the same cores.", turns)
	for i := range ways {
		if err := s.compare(ctx, &ways[i]); err != nil {
			return fmt.Errorf("%s, %d clients: %w", ways[i].what, ways[i].clients, err)
		}
	}
	return nil
}

// comparison is one way to read the list.
type comparison struct {
	what        string
	clients     int
	aim         float64
	header      http.Header
	unchanged   bool
	urls, files []string
}

func (s *benchRun) compare(ctx context.Context, c *comparison) error {
	relay, nginx := newReaders(c.clients, c.urls, c.header), newReaders(c.clients, c.files, c.header)
	defer relay.close()
	defer nginx.close()
	both := []*readersOf{relay, nginx}
	for _, r := range both {
		if c.unchanged {
			if err := r.askUnchanged(ctx); err != nil {
				return err
			}
		}
	}
	for range turns {
		for _, r := range both {
			if err := r.turn(ctx, s.window/(2*turns)); err != nil {
				return err
			}
		}
	}
	unit, rate := "requests/s", func(r *readersOf) float64 { return float64(r.requests.Load()) / r.took.Seconds() }
	if strings.HasPrefix(c.what, "Full") {
		unit, rate = "MB/s", func(r *readersOf) float64 { return float64(r.bytes.Load()) / 1e6 / r.took.Seconds() }
	}
	title := fmt.Sprintf("%s, %d client", c.what, c.clients)
	if c.clients > 1 {
		title += "s"
	}
	s.report.Add(report.Group{Title: title + ", of nginx's speed", Better: report.More, Aim: c.aim, Table: listTable}, "", rate(relay)/rate(nginx))
	speed := report.Group{Title: "Speed of the list, " + unit, Better: report.More}
	s.report.Add(speed, title+", relay", rate(relay))
	s.report.Add(speed, title+", nginx", rate(nginx))
	s.progressf("%s: %s: %.0f %s, nginx %.0f: %.2f", s.name, title, rate(relay), unit, rate(nginx), rate(relay)/rate(nginx))
	return nil
}
