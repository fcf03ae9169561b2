// Package load simulates clients of relays. Like an SDK, each proves, submits, repeats requests
// without an answer, proves again when its root was evicted, and polls. The proofs are simulated,
// so that many clients fit beside the relays on one machine; everything else is what a client does.
//
// All answers to clients go into a journal, to be compared with the database and the chain.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relaypool/relaypool/hack/wallet/simulator"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Options configure a Load. Options without a default are required.
type Options struct {
	// Relays are base URLs without a slash at the end.
	Relays    []string
	Simulator *simulator.Simulator
	// Mint is the asset that is spent.
	Mint shieldpool.Mint
	// Seed determines every random choice: notes, behaviour, pauses.
	Seed uint64
	HTTP *http.Client
	Now  func() time.Time

	// Rate is the number of new spends a second on average; SetRate changes it.
	Rate float64
	// InFlight bounds the unfinished spends; further spends are omitted.
	InFlight int
	// Swaps is the share of spends, from 0 to 1, that are swaps on Market.
	// Withdrawals is the share of withdrawals among the other spends; the rest are transfers.
	Swaps, Withdrawals float64
	// Unreachable is the share of swaps, from 0 to 1, whose minimum output the market
	// never offers: they must end as refunds.
	Unreachable float64
	Market      *Market
	// Rivals is the share of spends, from 0 to 1, that another client makes a
	// second time, with other outputs.
	Rivals float64
	// DirectShare is the share of spends, from 0 to 1, that the wallet sends not only to the relay
	// but also to the chain, by Direct. Without Direct there are none. A swap is never sent
	// directly: if it lands before the relay has accepted it, nobody executes its second leg.
	DirectShare float64
	Direct      func(context.Context, *Request)
	// PollMin and PollMax bound the pause between two polls of /status; the default is 2 s
	// and 5 s, as in SDKs.
	PollMin, PollMax time.Duration
	// Timeout is how long a client waits for one answer; 0 is 40 s.
	Timeout time.Duration
	// Backoff is the pause before the first repeat; it doubles with each repeat, 0 is 250 ms.
	// PauseMax bounds every pause, whatever the relay asks for; 0 is 10 s.
	Backoff, PauseMax time.Duration
}

// Load is a set of clients.
type Load struct {
	Options
	journal *Journal
	rate    atomic.Uint64
	// turn counts the calls by Post, Status and Root.
	turn atomic.Int64
}

// New checks the options and returns clients that do not run yet.
func New(o Options) (*Load, error) {
	if o.PollMin == 0 && o.PollMax == 0 {
		o.PollMin, o.PollMax = 2*time.Second, 5*time.Second
	}
	o.Timeout, o.Backoff, o.PauseMax = cmp.Or(o.Timeout, 40*time.Second), cmp.Or(o.Backoff, 250*time.Millisecond), cmp.Or(o.PauseMax, 10*time.Second)
	switch {
	case len(o.Relays) == 0 || o.Simulator == nil || o.HTTP == nil || o.Now == nil || o.Mint.Address.IsZero():
		return nil, errors.New("load options: Relays, Simulator, Mint, HTTP and Now are required")
	case o.Rate < 0 || o.InFlight < 1:
		return nil, fmt.Errorf("load options: Rate %g and InFlight %d, expected a Rate of 0 or more and an InFlight of 1 or more", o.Rate, o.InFlight)
	case o.PollMin <= 0 || o.PollMax < o.PollMin || o.Timeout <= 0 || o.Backoff <= 0 || o.PauseMax <= 0:
		return nil, fmt.Errorf("load options: PollMin %s, PollMax %s, Timeout %s, Backoff %s and PauseMax %s, expected all above 0 and PollMax at least PollMin", o.PollMin, o.PollMax, o.Timeout, o.Backoff, o.PauseMax)
	}
	if err := o.Market.check(o.Swaps); err != nil {
		return nil, err
	}
	l := &Load{Options: o, journal: newJournal()}
	l.SetRate(o.Rate)
	return l, nil
}

// Journal returns the answers to clients so far.
func (l *Load) Journal() *Journal { return l.journal }

// SetRate changes the number of new spends a second, from the next one on.
func (l *Load) SetRate(perSecond float64) { l.rate.Store(math.Float64bits(perSecond)) }

// idle is the time between two looks at a rate of 0.
const idle = 100 * time.Millisecond

// Run starts spends until arrivals ends. It returns when every client has its outcome or
// has given up. The end of ctx stops all clients at once. Spends arrive as a Poisson process.
func (l *Load) Run(ctx, arrivals context.Context) {
	r := rand.New(rand.NewPCG(l.Seed, math.MaxUint64)) //nolint:gosec // a schedule that repeats needs no secure randomness
	var clients sync.WaitGroup
	capacity := make(chan struct{}, l.InFlight)
	start := func(s *spend) {
		select {
		case capacity <- struct{}{}:
		default:
			return // InFlight spends are unfinished
		}
		record := l.journal.begin(s)
		clients.Go(func() {
			c := &client{Load: l, spend: s, record: record}
			l.journal.end(record, c.run(ctx))
			<-capacity
		})
	}
	for number := 0; ; number++ {
		rate := math.Float64frombits(l.rate.Load())
		gap := idle
		if rate > 0 {
			gap = time.Duration(r.ExpFloat64() / rate * float64(time.Second))
		}
		if !Sleep(arrivals, gap) || ctx.Err() != nil {
			break
		}
		if rate <= 0 {
			continue
		}
		s := newSpend(&l.Options, number)
		start(s)
		if r.Float64() < l.Rivals {
			number++
			start(s.rival(&l.Options, number))
		}
	}
	clients.Wait()
}
