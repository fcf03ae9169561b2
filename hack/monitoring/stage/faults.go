package stage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/relay/contract"
)

// Event is something that happened, for the pictures.
type Event struct {
	At   time.Time
	What string
}

// stageEvent is an event of the run. It lasts for a share of the time, and until each
// expression of until has had a value in Prometheus since the event's start: on a busy
// machine the effect and the scrape may take longer.
type stageEvent struct {
	share float64
	what  string
	do    func(context.Context) error
	until []string
}

const (
	// ledgerInterval is the interval of ledger updates: relays update the ledger once a
	// minute, too rarely for a short run.
	ledgerInterval = 2 * time.Second
	// eventTimeout bounds an event, observePoll is the interval of its queries.
	eventTimeout = 2 * time.Minute
	observePoll  = 500 * time.Millisecond
)

// Observed reports whether an expression has had a value since a time.
type Observed func(ctx context.Context, expr string, since time.Time) bool

// RunEvents loads the relays for the given time, and injects and repairs faults meanwhile. It
// takes longer if an event's expression has no value in time.
func (s *Stage) RunEvents(ctx context.Context, duration time.Duration, observed Observed) ([]Event, error) {
	arrivals, stop := context.WithCancel(ctx)
	defer stop()
	clients, leave := context.WithCancel(ctx)
	defer leave()
	var running sync.WaitGroup
	running.Go(func() { s.load.Run(clients, arrivals) })
	var events []Event
	var errs []error
	for _, event := range s.stageEvents() {
		s.progressf("%s", event.what)
		began := time.Now()
		events = append(events, Event{began, event.what})
		if err := event.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", event.what, err))
		}
		if !load.Sleep(ctx, time.Duration(event.share*float64(duration))) {
			break
		}
		errs = append(errs, event.awaitEffects(ctx, observed, began))
	}
	stop()
	leave()
	running.Wait()
	return events, errors.Join(append(errs, ctx.Err())...)
}

// awaitEffects waits until all expressions of the event have had a value.
func (s *stageEvent) awaitEffects(ctx context.Context, observed Observed, began time.Time) error {
	limit := time.Now().Add(eventTimeout)
	for _, expr := range s.until {
		for !observed(ctx, expr, began) {
			if time.Now().After(limit) {
				return fmt.Errorf("%s: %s had no value within %s", s.what, expr, eventTimeout)
			}
			if !load.Sleep(ctx, observePoll) {
				return nil // RunEvents reports the end of ctx
			}
		}
	}
	return nil
}

// KeepLedger runs the relay's ledger command repeatedly until ctx ends. Exit code 1 is not a
// failure here: the ledger need not balance while transactions are in flight.
func (s *Stage) KeepLedger(ctx context.Context) error {
	for load.Sleep(ctx, ledgerInterval) {
		out, err := s.Ledger(ctx)
		if err != nil && out == "" && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (s *Stage) stageEvents() []stageEvent {
	noAction := func(context.Context) error { return nil }
	up, usable := contract.MetricRPCUp.Name, contract.MetricPayerUsable.Name
	return []stageEvent{
		{0.14, "the load starts", noAction, nil},
		{0.14, "four times the load", func(context.Context) error { s.load.SetRate(4 * s.o.Rate); return nil }, nil},
		{0.03, "the load as before", func(context.Context) error { s.load.SetRate(s.o.Rate); return nil }, nil},
		{0.03, "a fork is abandoned", func(context.Context) error {
			_, err := s.Chain.Fork(forkedBlocks, bank.LandAgain)
			return err
		}, nil},
		{0.08, "endpoint 1 fails", func(context.Context) error { return s.setFaults(1, fault.Rule{Cut: true}) }, []string{"max by (endpoint) (" + up + ") == 0"}},
		{0.08, "no endpoint answers", func(context.Context) error {
			return errors.Join(s.setFaults(1, fault.Rule{Cut: true}), s.setFaults(2, fault.Rule{Cut: true}))
		}, []string{"max(" + up + ") == 0", contract.MetricQueuePaused.Name, contract.MetricHeld.Name + `{reason!~"(swap|router)_.+|no_route"} > 0`}},
		{0.05, "both endpoints answer", func(context.Context) error { return errors.Join(s.setFaults(1), s.setFaults(2)) }, nil},
		{0.03, "endpoint 2 lags, and endpoint 1 loses sends", func(context.Context) error {
			return errors.Join(s.setFaults(1, fault.Rule{Method: "sendTransaction", Probability: 0.9, Drop: true}), s.setFaults(2, fault.Rule{Lag: 20}))
		}, nil},
		{0.08, "the router fails", func(context.Context) error {
			return s.Chain.Router().Set(router.Settings{Faults: []fault.Rule{{Status: http.StatusServiceUnavailable}}})
		}, []string{contract.MetricRouterBreakerOpen.Name + " == 1"}},
		{0.04, "the router lies", func(context.Context) error {
			return s.Chain.Router().Set(router.Settings{Lies: []router.LieRule{{Lie: router.WrongProgram}}})
		}, []string{contract.MetricRouterRejected.Name + " > 0"}},
		{0.06, "all faults end, but the price falls", func(context.Context) error {
			return errors.Join(s.setFaults(1), s.setFaults(2), s.Chain.Router().Set(router.Settings{}), s.setPrice(60))
		}, []string{contract.MetricSwapWaits.Name + `{reason="swap_price"} > 0`}},
		{0, "no send arrives", func(context.Context) error {
			lost := fault.Rule{Method: "sendTransaction", Drop: true}
			return errors.Join(s.setFaults(1, lost), s.setFaults(2, lost))
		}, []string{contract.MetricInFlight.Name + `{pod=~".*` + s.relays[1].Name + `"} > 0`}},
		{0.04, "relay 2 is killed", func(context.Context) error { return s.relays[1].Kill() }, nil},
		{0.04, "relay 2 is back, sends arrive, and the price is as before", func(ctx context.Context) error {
			return errors.Join(s.setFaults(1), s.setFaults(2), s.setPrice(100), startRelay(ctx, s.relays[1]))
		}, []string{contract.MetricLeases.Name + `{event="reaped"} > 0`}},
		{0.09, "somebody else empties the fee payer", s.steal, []string{
			"max_over_time(max(" + usable + ")[5s:1s]) == 0", contract.MetricLedgerUnknown.Name + " > 0",
		}},
		{0.07, "both payers are funded", func(context.Context) error {
			return errors.Join(s.Chain.Fund(s.Payers[0].PublicKey(), highFunds/5), s.Chain.Fund(s.Payers[1].PublicKey(), highFunds/10))
		}, []string{contract.MetricCapLeft.Name + " < 1000000"}},
	}
}

// forkedBlocks is how many blocks a fork undoes: confirmed blocks, but no finalized block.
const forkedBlocks = 8

func (s *Stage) setFaults(endpoint int, rules ...fault.Rule) error {
	return s.Chain.SetFaults(map[string][]fault.Rule{fmt.Sprintf(endpointName, endpoint): rules})
}

// setPrice sets the market's price, in percent of its initial price.
func (s *Stage) setPrice(percent uint64) error {
	return s.Chain.SetReserves(market.Reserves{Lamports: localnet.DefaultReserveLamports, Tokens: localnet.DefaultReserveTokens / 100 * percent})
}

// remainingLamports is the balance after a theft: less than the payer's required minimum.
const remainingLamports = minimum * 6 / 10

// transferUnits is a compute unit limit above what a transfer uses.
const transferUnits = 10_000

// steal moves the first payer's funds to an unused address, with the payer's key but without
// a relay. It repeats that until hardly anything is left, because relays spend too.
func (s *Stage) steal(ctx context.Context) error {
	client, payer := rpc.New(s.URL), s.Payers[0].PublicKey()
	nowhere := solana.NewWallet().PublicKey()
	ctx, cancel := context.WithTimeoutCause(ctx, emptyPayerTimeout, errors.New("the payer still has funds"))
	defer cancel()
	for ctx.Err() == nil {
		balance, err := client.GetBalance(ctx, payer, rpc.CommitmentConfirmed)
		if err != nil {
			return err
		}
		if balance.Value < minimum {
			return nil
		}
		move := system.NewTransferInstruction(balance.Value-remainingLamports, payer, nowhere).Build()
		// A transfer fails if a relay spent funds meanwhile; the next one reads the new balance.
		_ = s.Send(ctx, transferUnits, true, s.Payers[:1], move)
		load.Sleep(ctx, confirmationSlots*s.o.Slot)
	}
	return context.Cause(ctx)
}

// confirmationSlots is about how many slots a transaction takes to be confirmed.
const confirmationSlots = 5
