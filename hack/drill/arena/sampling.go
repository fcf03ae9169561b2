package arena

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/drill/gather"
	"github.com/relaypool/relaypool/hack/drill/timeline"
	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/sandbox"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// historyInterval is the interval between two reads of the root history: several reads a slot.
	historyInterval = 100 * time.Millisecond
	// sampleInterval is the timeline's resolution. progressInterval is the interval between
	// progress lines.
	sampleInterval   = 500 * time.Millisecond
	progressInterval = 5 * time.Second
)

// recordRootHistories records the root histories that the chain's own node returns, at the two
// commitment levels that a relay may read, and the finalized slot and height.
func (a *arena) recordRootHistories(ctx context.Context) {
	for ctx.Err() == nil {
		for _, level := range []rpc.CommitmentType{rpc.CommitmentProcessed, rpc.CommitmentConfirmed} {
			if history, err := a.chainReader.RootHistory(ctx, level); err == nil {
				a.rootHistories = append(a.rootHistories, *history)
			}
		}
		if at, err := a.chainReader.Finality(ctx); err == nil {
			a.finality = append(a.finality, *at)
		}
		load.Sleep(ctx, historyInterval)
	}
}

// reportProgress samples the clients' journal, and prints progress at intervals.
func (a *arena) reportProgress(ctx context.Context) {
	next := time.Now()
	for ctx.Err() == nil {
		p := a.load.Journal().Progress()
		a.samples = append(a.samples, a.sample(ctx, p))
		if !time.Now().Before(next) {
			next = next.Add(progressInterval)
			a.printProgress(p)
		}
		load.Sleep(ctx, sampleInterval)
	}
}

func (a *arena) sample(ctx context.Context, p load.Progress) timeline.Sample {
	ctx, cancel := context.WithTimeout(ctx, sampleInterval)
	defer cancel()
	s := timeline.Sample{At: time.Since(a.began), Started: p.Spends}
	s.Known = a.database.counts(ctx, &s) == nil
	return s
}

func (a *arena) printProgress(p load.Progress) {
	phase := "load "
	if time.Since(a.began) > a.o.Duration {
		phase = "quiet"
	}
	active := a.director.activeEvents()
	slices.Sort(active)
	faults := "none"
	if len(active) > 0 {
		faults = strings.Join(active, ", ")
	}
	a.say("%s  accepted %d  completed %d  refunded %d  failed %d  clients %d  faults: %s", phase, p.Accepted, p.Completed, p.Refunded, p.Failed, p.Running, faults)
}

// metrics reads each relay's metrics page, and omits relays that do not answer.
func (a *arena) metrics(ctx context.Context) map[string][]byte {
	pages := make(map[string][]byte)
	for _, r := range a.relays {
		page, err := sandbox.Get(ctx, r.Operations+contract.MetricsPath)
		if err == nil {
			pages[fmt.Sprintf("metrics of relay %d", r.index+1)] = page
		}
	}
	return pages
}

// search looks for the content of every request in logs and metrics.
func (a *arena) search(e *verify.Evidence, pages map[string][]byte) error {
	set := gather.Canaries(e.Records)
	searchText := func(source string, text io.Reader) error {
		hits, read, err := set.Search(text)
		if err != nil {
			return fmt.Errorf("search %s: %w", source, err)
		}
		e.Scanned += read
		for _, hit := range hits {
			e.Leaks = append(e.Leaks, verify.Leak{Source: source, Line: hit.Line, What: hit.Name})
		}
		return nil
	}
	for source, page := range pages {
		if err := searchText(source, bytes.NewReader(page)); err != nil {
			return err
		}
	}
	for _, r := range a.relays {
		file, err := os.Open(filepath.Clean(r.LogFile))
		if err != nil {
			return fmt.Errorf("search logs: %w", err)
		}
		err = searchText(filepath.Base(r.LogFile), file)
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
	return nil
}
