package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/e2e/check"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/wallet/trade"
)

const (
	// peakRate is more spends a second than one pod lands with its concurrency, and
	// calmRate fewer; both are averages.
	peakRate, calmRate = 20, 2.5
	// swapShare of the spends are swaps.
	swapShare = 0.15

	// maxAway is the longest time without an accepted submission. At the calm rate
	// one comes every 0.4 s on average, so that a machine may be forty times slower;
	// a fleet whose pods all go before others serve is away for longer, for a pod
	// needs five seconds to be forgotten and some more to start.
	maxAway = 15 * time.Second
	// maxAwayAlone is instead of maxAway for a fleet of one pod that goes: a start.
	maxAwayAlone = time.Minute
	// failedShare is the share of calls, those for a status included, that may be
	// refused or stay without an answer while pods come and go one after another, which
	// should be none: on a node that stalls, its routes may forget a pod later than the
	// pod goes. Clients ask without a pause, so that a fleet which is away for a tenth
	// of the time passes it.
	failedShare = 0.1
	// failedShareKilled is that share while one pod of several is killed: its clients'
	// share, until its node's routes forget it, which takes longer than the rest.
	failedShareKilled = 0.5
)

// traffic is a crowd of clients that goes on beside the scenarios.
type traffic struct {
	*load.Load
	// stop ends arrivals, abandon stops clients where they are.
	stop, abandon context.CancelFunc
	running       sync.WaitGroup
}

// newTraffic starts clients of a fleet.
func (s *suite) newTraffic(t *testing.T, fleet string, rate, swaps float64, seed uint64) *traffic {
	t.Helper()
	router := trade.Router{URL: s.stage.routerURL(), HTTP: s.stage.HTTP}
	l, err := load.New(load.Options{
		Relays: []string{s.stage.fleetURL(fleet)}, Simulator: s.simulator, Mint: s.stage.Profile.Mints[0], Seed: seed,
		HTTP: s.stage.HTTP, Now: time.Now, Rate: rate, InFlight: 600, Withdrawals: 0.6, Rivals: 0.03,
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

// startTraffic begins the clients that go on to the accounting, unless they run.
func (s *suite) startTraffic(t *testing.T, rate float64) {
	t.Helper()
	if s.traffic == nil {
		s.traffic = s.newTraffic(t, fleetName, rate, swapShare, s.seed)
	}
	s.traffic.SetRate(rate)
}

func (c *traffic) progress() load.Progress { return c.Journal().Progress() }

// finish ends arrivals and waits until every client has its outcome, or the time is
// over, which stops those that are left.
func (c *traffic) finish(within time.Duration) load.Progress {
	c.stop()
	defer time.AfterFunc(within, c.abandon).Stop()
	c.running.Wait()
	return c.progress()
}

// String is the journal's progress in a line.
func (c *traffic) String() string {
	p := c.progress()
	return fmt.Sprintf("%d spends: %d accepted, %d completed (%d final), %d refunded, %d failed; %d refused for now, %d without an answer",
		p.Spends, p.Accepted, p.Completed, p.Finalized, p.Refunded, p.Failed, p.Busy, p.Silent)
}

// service is how clients were to be served during a scenario.
type service struct {
	scenario string
	from, to time.Time
	bounds   check.Bounds
}

// whenOneGoes are the bounds for a fleet of so many pods of which one goes; share is
// what the others may lose then.
func whenOneGoes(pods int, share float64) check.Bounds {
	if pods == 1 {
		return check.Bounds{Away: maxAwayAlone, Share: 1} // nobody else is there to serve
	}
	return check.Bounds{Away: maxAway, Share: share}
}

// startServing begins to hold the service against its bounds, once clients are
// served, and gives what ends it.
func (s *suite) startServing(t *testing.T, bounds check.Bounds) (stop func()) {
	t.Helper()
	s.await(t, "clients are served", 2*time.Minute, func(context.Context) error {
		if s.traffic.progress().Accepted == 0 {
			return errors.New("nothing was accepted yet")
		}
		return nil
	})
	of, before := service{scenario: s.scenario, from: time.Now(), bounds: bounds}, s.traffic.progress()
	return func() {
		t.Helper()
		of.to = time.Now()
		s.services = append(s.services, of)
		after, seen := s.traffic.progress(), of.sum(calls(s.traffic.Journal().Records()))
		s.log(t, "meanwhile %d completed; %s", after.Completed-before.Completed, seen)
		ok(t, seen.Within(of.bounds))
	}
}

func (o *service) sum(calls []check.Call) check.Service { return check.Served(calls, o.from, o.to) }

// servedAll checks all services once more, when calls have ended that were under way
// as their scenario did.
func servedAll(services []service, records []load.Record) error {
	var errs []error
	all := calls(records)
	for i := range services {
		of := &services[i]
		if err := of.sum(all).Within(of.bounds); err != nil {
			errs = append(errs, fmt.Errorf("serve clients throughout the scenario %s: %w", of.scenario, err))
		}
	}
	return errors.Join(errs...)
}

// calls are what the journal has of clients' requests.
func calls(records []load.Record) (all []check.Call) {
	for _, record := range records {
		for _, request := range record.Requests {
			for n := range request.Answers {
				a := &request.Answers[n]
				all = append(all, check.Call{Sent: a.Sent, At: a.At, Status: a.Status, Accepted: a.Accepted()})
			}
		}
	}
	return all
}
