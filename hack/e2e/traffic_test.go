package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/wallet/trade"
)

const (
	// peakRate is more spends a second than two pods can land at their concurrency, and calmRate is
	// fewer than one can; both are averages.
	peakRate, calmRate = 20, 2.5
	// swapShare is the share of spends that are swaps.
	swapShare = 0.15

	// maxSilence is the longest time without an accepted submission. At the calm rate a
	// submission comes every 0.4 s on average, so a machine that is thirty times slower still
	// passes. A fleet fails if all its pods end before others serve: then it has no service for
	// the five seconds until endpoints drop a pod, and for the time of a start.
	maxSilence = 15 * time.Second
	// maxSilenceAlone replaces maxSilence for a fleet whose only pod ends: a new pod has to start.
	maxSilenceAlone = time.Minute
	// failedShare is the share of calls, status requests included, that may be refused or stay
	// without an answer while pods come and go one after another. It should be zero, but the
	// routes of a node that stalls may drop a pod only after it has gone. Clients send requests
	// without a pause, so a fleet that does not serve for a tenth of the time exceeds
	// the share.
	failedShare = 0.1
	// failedShareKilled replaces failedShare while one of several pods is killed: requests to
	// it fail until its node's routes drop the pod, which takes longer than on other nodes.
	failedShareKilled = 0.5
)

// traffic is a number of clients that run during the scenarios.
type traffic struct {
	*load.Load
	// stop ends arrivals, and abandon stops clients where they are.
	stop, abandon context.CancelFunc
	running       sync.WaitGroup
}

// newTraffic starts clients of a fleet, inside the cluster.
func (s *suite) newTraffic(t *testing.T, fleet string, rate, swaps float64, seed uint64) *traffic {
	t.Helper()
	return s.newTrafficFrom(t, s.stage.HTTP, []string{s.stage.fleetURL(fleet)}, rate, swaps, seed)
}

// newTrafficFrom starts clients that use relays at some URLs in turn.
func (s *suite) newTrafficFrom(t *testing.T, from *http.Client, relays []string, rate, swaps float64, seed uint64) *traffic {
	t.Helper()
	router := trade.Router{URL: s.stage.routerURL(), HTTP: s.stage.HTTP}
	l, err := load.New(load.Options{
		Relays: relays, Simulator: s.simulator, Mint: s.stage.Profile.Mints[0], Seed: seed,
		HTTP: from, Now: time.Now, Rate: rate, InFlight: 600, Withdrawals: 0.6, Rivals: 0.03,
		Swaps: swaps, Unreachable: 0.2,
		Market: &load.Market{Pool: s.stage.Pool, Mint: localnet.OutputMint(), Quote: router.Quote},
	})
	ok(t, err)
	running, abandon := context.WithCancel(s.ctx)
	arrivals, stop := context.WithCancel(running)
	clients := &traffic{Load: l, stop: stop, abandon: abandon}
	clients.running.Go(func() { l.Run(running, arrivals) })
	return clients
}

// startTraffic starts the clients that run until the accounting, unless they already run.
func (s *suite) startTraffic(t *testing.T, rate float64) {
	t.Helper()
	if s.traffic == nil {
		s.traffic = s.newTraffic(t, fleetName, rate, swapShare, s.seed)
	}
	s.traffic.SetRate(rate)
}

func (c *traffic) progress() load.Progress { return c.Journal().Progress() }

// finish ends arrivals and waits until every client has its outcome. At the end of the time it
// stops the clients that are left.
func (c *traffic) finish(within time.Duration) load.Progress {
	c.stop()
	defer time.AfterFunc(within, c.abandon).Stop()
	c.running.Wait()
	return c.progress()
}

// String returns the journal's progress in a line.
func (c *traffic) String() string {
	p := c.progress()
	return fmt.Sprintf("%d spends: %d accepted, %d completed (%d final), %d refunded, %d failed; %d refused for now, %d without an answer",
		p.Spends, p.Accepted, p.Completed, p.Finalized, p.Refunded, p.Failed, p.Busy, p.Silent)
}

// service is the time of a scenario, and the bounds of the service during that time.
type service struct {
	scenario string
	from, to time.Time
	bounds   serviceBounds
}

// boundsWhenOneEnds returns the bounds for a fleet of so many pods while one of them ends. share
// is the share of calls that may fail if there are others.
func boundsWhenOneEnds(pods int, share float64) serviceBounds {
	if pods == 1 {
		return serviceBounds{MaxSilence: maxSilenceAlone, MaxFailed: 1} // no other pod serves
	}
	return serviceBounds{MaxSilence: maxSilence, MaxFailed: share}
}

// startService starts to measure the service once clients are served, and returns the function
// that ends the measurement and checks the bounds.
func (s *suite) startService(t *testing.T, bounds serviceBounds) (stop func()) {
	t.Helper()
	s.await(t, "clients are served", 2*time.Minute, func(context.Context) error {
		if s.traffic.progress().Accepted == 0 {
			return errors.New("nothing was accepted yet")
		}
		return nil
	})
	current, before := service{scenario: s.scenario, from: time.Now(), bounds: bounds}, s.traffic.progress()
	return func() {
		t.Helper()
		current.to = time.Now()
		s.services = append(s.services, current)
		after, observed := s.traffic.progress(), current.sum(calls(s.traffic.Journal().Records()))
		s.log(t, "meanwhile %d completed; %s", after.Completed-before.Completed, observed)
		ok(t, observed.within(current.bounds))
	}
}

func (o *service) sum(calls []call) availability { return served(calls, o.from, o.to) }

// servedAll checks all services again, after the end of the calls that were under way at the end
// of their scenarios.
func servedAll(services []service, records []load.Record) error {
	var errs []error
	all := calls(records)
	for i := range services {
		one := &services[i]
		if err := one.sum(all).within(one.bounds); err != nil {
			errs = append(errs, fmt.Errorf("serve clients throughout the scenario %s: %w", one.scenario, err))
		}
	}
	return errors.Join(errs...)
}

// calls returns the clients' requests in the journal.
func calls(records []load.Record) (all []call) {
	for _, record := range records {
		for _, request := range record.Requests {
			for n := range request.Answers {
				a := &request.Answers[n]
				all = append(all, call{Sent: a.Sent, At: a.At, Status: a.Status, Accepted: a.Accepted()})
			}
		}
	}
	return all
}
