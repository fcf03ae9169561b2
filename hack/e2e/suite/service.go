package suite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/judge"
	"github.com/relaypool/relaypool/hack/e2e/report"
	"github.com/relaypool/relaypool/hack/load"
)

const (
	// mostAway is the longest time without an accepted submission. At the calm rate
	// one comes every 0.4 s on average, so that a machine may be forty times slower;
	// a fleet whose pods all go before others serve is away for longer, for a pod
	// needs five seconds to be forgotten and some more to start.
	mostAway = 15 * time.Second
	// orderly is the share of calls, those for a status included, that may be refused
	// or stay without an answer while pods come and go one after another, which should
	// be none: on a node that stalls, its routes may forget a pod later than the pod
	// goes. Clients ask without a pause, so that a fleet which is away for a tenth of
	// the time passes it.
	orderly = 0.1
	// torn is that share while one pod of several is away without a word: its clients'
	// share, until its node's routes forget it, which takes longer than the rest.
	torn = 0.5
	// aloneAway is instead of mostAway for a fleet of one pod that goes: a start.
	aloneAway = time.Minute
)

// service is how clients were to be served during a scenario.
type service struct {
	scenario string
	from, to time.Time
	bounds   judge.Bounds
}

// bounds are those for a fleet of so many pods of which one goes; share is what
// the others may lose then.
func bounds(pods int, share float64) judge.Bounds {
	if pods == 1 {
		return judge.Bounds{Away: aloneAway, Share: 1} // nobody else is there to serve
	}
	return judge.Bounds{Away: mostAway, Share: share}
}

// serving begins to hold the service against its bounds, once clients are served,
// and gives what ends it.
func (s *suite) serving(ctx context.Context, r *report.Scenario, within judge.Bounds) (served func() error, err error) {
	if err := cluster.Await(ctx, "clients are served", cluster.Minutes(2), func(context.Context) (string, error) {
		if s.traffic.load.Journal().Progress().Accepted == 0 {
			return "nothing was accepted yet", nil
		}
		return "", nil
	}); err != nil {
		return nil, err
	}
	of := service{scenario: r.Name, from: s.Now(), bounds: within}
	return func() error {
		of.to = s.Now()
		s.services = append(s.services, of)
		seen := of.sum(calls(s.traffic.load.Journal().Records()))
		r.Saw("meanwhile %s", seen)
		if err := seen.Within(of.bounds); err != nil {
			return fmt.Errorf("clients have to be served throughout: %w", err)
		}
		return nil
	}, nil
}

func (o *service) sum(calls []judge.Call) judge.Service { return judge.Served(calls, o.from, o.to) }

// servedAll holds all of them once more, when calls have ended that were under
// way as their scenario did.
func (s *suite) servedAll(records []load.Record) error {
	var errs []error
	all := calls(records)
	for i := range s.services {
		of := &s.services[i]
		if err := of.sum(all).Within(of.bounds); err != nil {
			errs = append(errs, fmt.Errorf("clients have to be served throughout the scenario %s: %w", of.scenario, err))
		}
	}
	return errors.Join(errs...)
}

// calls are what the journal has of clients' requests.
func calls(records []load.Record) (all []judge.Call) {
	for i := range records {
		for k := range records[i].Requests {
			for n := range records[i].Requests[k].Answers {
				a := &records[i].Requests[k].Answers[n]
				all = append(all, judge.Call{Sent: a.Sent, At: a.At, Status: a.Status, Accepted: a.Accepted()})
			}
		}
	}
	return all
}
