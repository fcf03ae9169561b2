package suite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/wallet/trade"
)

// traffic is a crowd of clients that goes on beside the scenarios.
type traffic struct {
	load *load.Load
	// stop ends arrivals, abandon stops clients where they are.
	stop, abandon context.CancelFunc
	running       sync.WaitGroup
}

// unreachable is the share of swaps whose minimum no market reaches.
const unreachable = 0.2

// crowd says what clients do.
type crowd struct {
	fleet string
	rate  float64
	swaps float64
	seed  uint64
}

// begin starts clients of a fleet.
func (s *suite) begin(ctx context.Context, c crowd) (*traffic, error) {
	profile := s.stage.Chain.Profile
	router := trade.Router{URL: s.stage.RouterURL(), HTTP: s.stage.HTTP}
	l, err := load.New(load.Options{
		Relays: []string{s.stage.FleetURL(c.fleet)}, Simulator: s.Simulator, Mint: profile.Mints[0], Seed: c.seed,
		HTTP: s.stage.HTTP, Now: s.Now, Rate: c.rate, InFlight: 600, Withdrawals: 0.6, Rivals: 0.03,
		Swaps: c.swaps, Unreachable: unreachable,
		Market: &load.Market{Pool: s.stage.Chain.Pool, Mint: localnet.OutputMint(), Quote: router.Quote},
	})
	if err != nil {
		return nil, fmt.Errorf("make clients: %w", err)
	}
	running, abandon := context.WithCancel(ctx)
	arrivals, stop := context.WithCancel(running)
	t := &traffic{load: l, stop: stop, abandon: abandon}
	t.running.Go(func() { l.Run(running, arrivals) })
	return t, nil
}

// finish ends arrivals and waits until every client has its outcome, or the time
// is over, which stops those that are left.
func (t *traffic) finish(within time.Duration) load.Progress {
	t.stop()
	giveUp := time.AfterFunc(within, t.abandon)
	t.running.Wait()
	giveUp.Stop()
	return t.load.Journal().Progress()
}

// words is the journal's progress in a line.
func words(p load.Progress) string {
	return fmt.Sprintf("%d spends: %d accepted, %d completed (%d final), %d refunded, %d failed; %d refused for now, %d without an answer",
		p.Spends, p.Accepted, p.Completed, p.Finalized, p.Refunded, p.Failed, p.Busy, p.Silent)
}
