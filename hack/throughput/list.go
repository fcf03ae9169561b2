package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/sandbox"
	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/hack/throughput/report"
	"github.com/relaypool/relaypool/hack/throughput/stand"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// listPage is the most leaves that the relay puts into an answer. listTail are the leaves at the
	// list's end that a client without the newest asks for.
	listPage, listTail = 100_000, 100
	listPoll           = 200 * time.Millisecond
	listTimeout        = 30 * time.Minute
	coldStarts         = 5
	listTable          = "List of commitments"
	coldPoll           = 2 * time.Millisecond
	coldTimeout        = 2 * time.Minute
)

// encodings are the forms of the list, by name.
var encodings = []struct {
	name   string
	header http.Header
}{
	{"JSON", http.Header{"Accept-Encoding": {"identity"}}},
	{"zstd", http.Header{"Accept-Encoding": {"zstd"}}},
	{"gzip", http.Header{"Accept-Encoding": {"gzip"}}},
	{"binary", http.Header{"Accept": {"application/octet-stream"}}},
}

// list measures the list of commitments, from the first start of a relay to its answers. The session
// without leaves, before the other one, has the memory to compare with.
func (s *benchRun) list(ctx context.Context) error {
	if s.setup.SeedLeaves == 0 {
		idle, err := s.measureMemory(ctx, 0)
		s.idle = idle.resident
		return err
	}
	if err := s.sync(ctx); err != nil {
		return err
	}
	if err := s.coldStart(ctx); err != nil {
		return err
	}
	folder, err := filepath.Abs(s.stand.File("list"))
	if err == nil {
		err = os.MkdirAll(folder, 0o750)
	}
	if err != nil {
		return fmt.Errorf("store the list: %w", err)
	}
	if err := s.save(ctx, folder); err != nil {
		return err
	}
	after, err := s.measureMemory(ctx, 0)
	if err != nil {
		return err
	}
	s.report.Add(report.Group{Title: "Memory of the list, resident, once read in each encoding, beyond a relay without leaves", Unit: "MB", Better: report.Less, Aim: 126, Table: listTable}, "", (after.resident-s.idle)/1e6)
	nginx, err := stand.StartNginx(ctx, folder)
	if errors.Is(err, stand.ErrNoNginx) {
		s.report.Note("The list is not compared with a static file, because nginx is not installed: apt-get install nginx-light.")
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(s.compareWithNginx(ctx, nginx.URL), nginx.Stop())
}

// sync measures the first start on a chain that has leaves.
func (s *benchRun) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, errors.New("the relay did not read all leaves in time"))
	defer cancel()
	before, err := s.read(ctx)
	for leaves := float64(s.setup.SeedLeaves); err == nil; load.Sleep(ctx, listPoll) {
		var pages [][]byte
		if pages, err = s.stand.Metrics(ctx); err == nil && gauge.ReadMetrics(pages).Sum(contract.MetricIndexServed.Name) >= leaves {
			break
		}
	}
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	after, err := s.read(ctx)
	if err != nil {
		return err
	}
	leaves, took, used := float64(s.setup.SeedLeaves), after.at.Sub(before.at), after.processor.Since(before.processor)
	s.others = append(s.others, used.Others())
	s.report.Add(report.Group{Title: "Leaves read from the chain a second, first start", Unit: perSecond, Better: report.More, Table: listTable}, "", leaves/took.Seconds())
	cost := report.Group{Title: "Processor time per leaf read from the chain", Unit: "µs", Better: report.Less}
	s.report.Add(cost, "relay", 1000*ms(used.Relays)/leaves)
	s.report.Add(cost, "Postgres", 1000*ms(used.Database)/leaves)
	s.report.Add(cost, "local chain", 1000*ms(used.Clients)/leaves)
	s.progressf("%s: %.0f leaves read in %.1f s", s.name, leaves, took.Seconds())
	return nil
}

// coldStart measures further relays on the database with all leaves, from their start until they
// are ready and serve the newest leaf. The last of them stays, as the stand's relay.
func (s *benchRun) coldStart(ctx context.Context) error {
	var times []float64
	for n := range coldStarts {
		relay, err := s.stand.Another(ctx, fmt.Sprintf("cold relay %d", n+1))
		if err != nil {
			return err
		}
		began := time.Now()
		if err := relay.Start(); err != nil {
			return err
		}
		if err := s.awaitNewest(ctx, relay); err != nil {
			return err
		}
		times = append(times, ms(time.Since(began)))
		for _, other := range s.stand.Relays {
			if err := other.Kill(); err != nil {
				return err
			}
		}
		s.stand.Relays = []*sandbox.Relay{relay}
	}
	s.report.Add(report.Group{Title: "Start of a relay on a database with all leaves, to ready with the list", Unit: "ms", Better: report.Less, Aim: 1000, Table: listTable}, "", gauge.Median(times))
	return nil
}

// awaitNewest waits more closely than a relay's Await.
func (s *benchRun) awaitNewest(ctx context.Context, relay *sandbox.Relay) error {
	ctx, stop := context.WithTimeout(ctx, coldTimeout)
	defer stop()
	newest := fmt.Sprintf("%s%s?from_index=%d&limit=1", relay.URL, contract.CommitmentsPath, s.setup.SeedLeaves-1)
	for ctx.Err() == nil && relay.Ended() == nil {
		var page []byte
		_, err := sandbox.Get(ctx, relay.Operations+contract.ReadinessPath)
		if err == nil {
			page, err = sandbox.Get(ctx, newest)
		}
		if err == nil && bytes.Contains(page, []byte(`"count":1`)) { // without the leaf, the list is empty
			return nil
		}
		load.Sleep(ctx, coldPoll)
	}
	return errors.Join(relay.Ended(), ctx.Err())
}

func (s *benchRun) listURL(from, leaves int) string {
	return fmt.Sprintf("%s%s?from_index=%d&limit=%d", s.stand.Relays[0].URL, contract.CommitmentsPath, from, leaves)
}

// save reads the list in each encoding, and stores its pages as files, and those of the tail.
func (s *benchRun) save(ctx context.Context, folder string) error {
	leaves := int(s.setup.SeedLeaves) //nolint:gosec // a million
	for _, e := range encodings {
		for from := 0; from < leaves; from += listPage {
			if err := saveAnswer(ctx, s.listURL(from, min(listPage, leaves-from)), e.header, filepath.Join(folder, fmt.Sprintf("%s-%d", e.name, from))); err != nil {
				return err
			}
		}
	}
	return saveAnswer(ctx, s.listURL(leaves-listTail, listTail), encodings[0].header, filepath.Join(folder, "tail"))
}

func saveAnswer(ctx context.Context, url string, header http.Header, path string) (err error) {
	file, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("store the list: %w", err)
	}
	_, err = pull(ctx, http.DefaultClient, url, header, http.StatusOK, file)
	return errors.Join(err, file.Close())
}

// pull reads an answer to its end and returns its entity tag.
func pull(ctx context.Context, client *http.Client, url string, header http.Header, want int, to io.Writer) (tag string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody) //nolint:gosec // the relay that the benchmark started
	if err != nil {
		return "", err
	}
	request.Header = header
	answer, err := client.Do(request) //nolint:gosec // as above
	if err != nil {
		return "", err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{answer.Body}, make([]byte, 64<<10))
	if err == nil && answer.StatusCode != want {
		err = fmt.Errorf("%s answers %s, want %d", url, answer.Status, want)
	}
	return answer.Header.Get("Etag"), errors.Join(err, answer.Body.Close())
}
