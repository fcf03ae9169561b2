package arena

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/relaypool/relaypool/hack/drill/timeline"
	"github.com/relaypool/relaypool/hack/load"
)

// sampleInterval is the timeline's resolution. progressInterval is the interval between
// progress lines.
const (
	sampleInterval   = 500 * time.Millisecond
	progressInterval = 5 * time.Second
)

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
