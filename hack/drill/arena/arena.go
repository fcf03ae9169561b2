// Package arena runs a drill: relays, a database and a chain on one machine, clients that load
// them, a director that injects faults, and the evidence at the end.
package arena

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/drill/gather"
	"github.com/relaypool/relaypool/hack/drill/schedule"
	"github.com/relaypool/relaypool/hack/drill/timeline"
	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/sandbox"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Options configure a drill. All fields are required.
type Options struct {
	// Root is the checkout that the relay is built from.
	Root string
	// State is an empty folder for logs, keys and the database.
	State string
	// Seed determines schedule and load; Duration is how long both last.
	Seed     uint64
	Duration time.Duration
	// Quiet bounds the wait for every outcome to be final, after the load.
	Quiet time.Duration
	// Relays, Endpoints and Payers are the numbers of relays, RPC endpoints and fee payers.
	Relays, Endpoints, Payers int
	// Lies are names of LieNames: one endpoint makes these false claims. Attacks are names of
	// AttackNames: hostile clients do these actions. Both are empty for a drill without hostility.
	Lies, Attacks []string
	// Swaps is the share of spends that are swaps.
	Swaps float64
	// Rate is the average number of new spends a second; InFlight bounds the unfinished ones.
	Rate     float64
	InFlight int
	// PollMin and PollMax bound a client's pause between two requests of /status.
	// PauseMax bounds its pause before a repeat.
	PollMin, PollMax, PauseMax time.Duration
	// Slot is the duration of a slot. A block is final when FinalizeAfter blocks are on top of it.
	Slot          time.Duration
	FinalizeAfter uint64
	// Progress receives progress lines at intervals.
	Progress io.Writer
}

func (o *Options) validate() error {
	switch {
	case o.Root == "" || o.State == "" || o.Progress == nil:
		return errors.New("drill options: Root, State and Progress are required")
	case o.Duration <= 0 || o.Quiet <= 0 || o.Slot <= 0:
		return fmt.Errorf("drill options: Duration %s, Quiet %s and Slot %s, expected all above 0", o.Duration, o.Quiet, o.Slot)
	case o.Relays < 1 || o.Endpoints < 1 || o.Payers < 1:
		return fmt.Errorf("drill options: %d relays, %d endpoints and %d payers, expected 1 or more of each", o.Relays, o.Endpoints, o.Payers)
	case firstUnknown(o.Lies, LieNames()) != "" || firstUnknown(o.Attacks, AttackNames()) != "":
		return fmt.Errorf("drill options: unknown lie %q or attack %q, expected names of %q and %q", firstUnknown(o.Lies, LieNames()), firstUnknown(o.Attacks, AttackNames()), LieNames(), AttackNames())
	case len(o.Lies) > 0 && o.Endpoints < 2:
		return errors.New("drill options: Lies need 2 or more endpoints: a single endpoint's answers cannot be checked")
	case o.Swaps < 0 || o.Swaps > 1:
		return fmt.Errorf("drill options: Swaps is %g, expected 0 to 1", o.Swaps)
	case o.FinalizeAfter < 4:
		return fmt.Errorf("drill options: FinalizeAfter is %d blocks, expected 4 or more, so that forks have something to undo", o.FinalizeAfter)
	}
	return nil
}

// firstUnknown returns the first name that is not in known; "" if all are known.
func firstUnknown(names, known []string) string {
	if i := slices.IndexFunc(names, func(name string) bool { return !slices.Contains(known, name) }); i >= 0 {
		return names[i]
	}
	return ""
}

// Outcome is the result of a drill.
type Outcome struct {
	Events   []schedule.Event
	Evidence *verify.Evidence
	Timeline timeline.Timeline
	Clients  load.Progress
	// Exits are the exits of relay processes that were not killed.
	Exits []Exit
	// Unfinished is the number of submissions without a final outcome when the wait for them ended.
	Unfinished int
	// Duration is the duration of the whole drill. QuietDuration is that of the wait for outcomes.
	Duration, QuietDuration time.Duration
	// CutConnections is the number of database connections that were cut.
	CutConnections int64
	// EndedWithoutDatabase counts relays that exited because their database was unreachable.
	EndedWithoutDatabase int
	// BasePrice returns the output for an amount of lamports at the usual price of the market.
	BasePrice func(lamports uint64) (out uint64)
	// Router counts the router's answers that were faults, lies or refusals, by name.
	Router map[string]uint64
	// Lies counts the endpoints' answers that were lies, by what they lied about.
	Lies map[string]uint64
}

// maxStartFailure is how long a relay may take to exit when its database is unreachable at its
// start.
const maxStartFailure = 10 * time.Second

type arena struct {
	o     Options
	began time.Time

	http        *http.Client
	box         *sandbox.Sandbox
	database    *database
	network     *network
	relays      []*relay
	chainReader *gather.Chain
	load        *load.Load
	director    *director
	keyService  *sandbox.KeyService

	connectionsCut atomic.Int64
	mu             sync.Mutex
	exits          []Exit
	// endedWithoutDatabase counts relays that exited because their database was unreachable.
	endedWithoutDatabase int
	// attackCount counts attacks. hostileAnswers counts the relays' answers to them.
	attackCount    int
	hostileAnswers map[verify.HostileAnswer]int
	samples        []timeline.Sample
	rootHistories  []verify.RootHistory
	finality       []verify.Finality
	// undone are the transactions that forks undid.
	undone map[solana.Signature]bool
	// openingBalances are the payers' lamports at the start. airdrops are the later airdrops.
	openingBalances map[solana.PublicKey]uint64
	airdrops        map[solana.PublicKey][]solana.Signature
	// market is where swaps buy. vaultOpening is its wrapped SOL at the start, in lamports.
	market       *market.Market
	vaultOpening uint64
}

// Run carries out a drill and gathers the evidence. An error means that the drill itself
// failed; faults of relays are in the outcome.
func Run(ctx context.Context, o Options) (out *Outcome, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	a := &arena{o: o, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.InFlight}}, openingBalances: make(map[solana.PublicKey]uint64), airdrops: make(map[solana.PublicKey][]solana.Signature), undone: make(map[solana.Signature]bool), hostileAnswers: make(map[verify.HostileAnswer]int)}
	defer a.http.CloseIdleConnections()
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var keepers sync.WaitGroup
	defer func() {
		stop()
		for _, r := range a.relays { // they still run after a failed drill
			err = errors.Join(err, r.kill())
		}
		keepers.Wait()
		if a.box != nil {
			err = errors.Join(err, a.box.Close(context.WithoutCancel(ctx)))
		}
	}()
	if err := a.setUp(ctx); err != nil {
		return nil, err
	}
	for _, r := range a.relays {
		keepers.Go(func() { r.keepRunning(background) })
	}
	ready, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("a minute has passed"))
	defer cancel()
	for _, r := range a.relays {
		if err := r.awaitReady(ready); err != nil {
			return nil, err
		}
	}
	return a.drill(ctx)
}

// drill runs the timed part: load and faults, the wait for outcomes, evidence.
func (a *arena) drill(ctx context.Context) (*Outcome, error) {
	events := schedule.Make(schedule.Options{
		Seed: a.o.Seed, Duration: a.o.Duration, Relays: a.o.Relays, Endpoints: a.o.Endpoints,
		Faults: faultNames(), Hard: hardFaults(), Kinds: schedule.AllKinds(), RouterFaults: routerFaultNames(), SignerFaults: sandbox.SignerFaults(), Strangers: strangerNames(), Lies: a.o.Lies, Lasting: lastingLies(a.o.Lies, a.o.Endpoints), Attacks: a.o.Attacks, MaxForked: int(min(maxForkedBlocks, a.o.FinalizeAfter-2)),
	})
	a.began = time.Now()
	a.director = &director{arena: a, active: make(map[int]string)}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	var watchers, clients sync.WaitGroup
	watchers.Go(func() { a.recordRootHistories(watching) })
	watchers.Go(func() { a.reportProgress(watching) })

	arrivals, stopArrivals := context.WithTimeout(ctx, a.o.Duration)
	defer stopArrivals()
	untilQuiet, stopWaiting := context.WithTimeout(ctx, a.o.Duration+a.o.Quiet)
	defer stopWaiting()
	clients.Go(func() { a.load.Run(untilQuiet, arrivals) })
	directorErr := a.director.run(ctx, events)
	<-arrivals.Done()
	clearErr := a.network.clear()
	a.say("load and faults have ended; waiting for every outcome to be final")
	quietStart := time.Now()
	clients.Wait()
	open, err := a.awaitQuiet(untilQuiet)
	quietDuration := time.Since(quietStart)
	directorErr = errors.Join(directorErr, a.director.endLastingLies())
	stopWatching()
	watchers.Wait()
	if len(a.box.Payers) > 1 && a.keyService.Signed.Load() == 0 {
		err = errors.Join(err, errors.New("the relays had the key service sign nothing"))
	}
	if err := errors.Join(directorErr, clearErr, err, ctx.Err()); err != nil {
		return nil, err
	}
	e, err := a.gather(ctx, events)
	if err != nil {
		return nil, err
	}
	return &Outcome{
		Events: events, Evidence: e, Clients: a.load.Journal().Progress(), Exits: a.exits, Unfinished: open,
		Duration: time.Since(a.began), QuietDuration: quietDuration, CutConnections: a.connectionsCut.Load(), EndedWithoutDatabase: a.endedWithoutDatabase,
		Router: a.network.routerCounts(), Lies: a.network.lieCounts(), BasePrice: basePrice,
		Timeline: timeline.Timeline{
			Title: fmt.Sprintf("Drill with seed %d", a.o.Seed), Load: a.o.Duration,
			Samples: a.samples, Bands: a.director.bands, Lanes: a.lanes(),
		},
	}, nil
}

func (a *arena) lanes() (lanes []string) {
	lanes = append(lanes, "load")
	for i := range a.relays {
		lanes = append(lanes, fmt.Sprintf("relay %d", i+1))
	}
	lanes = append(lanes, "Postgres")
	for i := range a.network.endpoints {
		lanes = append(lanes, fmt.Sprintf("endpoint %d", i+1))
	}
	lanes = append(lanes, "payers", "key service", "chain", "market", "router", "strangers")
	if len(a.o.Attacks) > 0 {
		lanes = append(lanes, "hostile clients")
	}
	return lanes
}

func (a *arena) recordExit(e Exit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// As in a cluster, a relay that finds no database at its start exits and is started
	// again. An exit at another time or for another reason is a fault.
	if e.Fault != "" && e.Lived < maxStartFailure && a.database.wasDownSince(e.At.Add(-e.Lived)) {
		a.endedWithoutDatabase++
		return
	}
	a.exits = append(a.exits, e)
}

// awaitQuiet waits until every submission's outcome is final. It returns the
// number of submissions without a final outcome when ctx ends first.
func (a *arena) awaitQuiet(ctx context.Context) (open int, err error) {
	queryCtx := context.WithoutCancel(ctx)
	for {
		var working, unfinalized int
		if err := a.database.withConnection(queryCtx, func(conn *pgx.Conn) (err error) {
			working, unfinalized, err = gather.Open(queryCtx, conn)
			return err
		}); err != nil {
			return 0, err
		}
		if open = working + unfinalized; open == 0 || ctx.Err() != nil {
			return open, nil
		}
		load.Sleep(ctx, 500*time.Millisecond)
	}
}

// gather stops the relays, so that nothing changes any more, and reads the evidence.
func (a *arena) gather(ctx context.Context, events []schedule.Event) (*verify.Evidence, error) {
	metricsPages, swapAnswers := a.metrics(ctx), a.swapStatuses(ctx)
	var stopping sync.WaitGroup
	for _, r := range a.relays {
		stopping.Go(r.stop)
	}
	stopping.Wait()
	a.say("relays have stopped, reading database and chain")
	profile := a.box.Pool.Profile
	e := &verify.Evidence{
		Fees: profile.Fees, SwapTimeout: profile.SwapTimeout, SwapGrace: a.swapGrace(events), SwapAnswers: swapAnswers,
		Records: a.load.Journal().Records(), RootHistories: a.rootHistories, Undone: a.undone,
		Heights: a.chainReader.Heights, Finality: a.finality, HostileAnswers: a.hostileAnswers, ProofAEncoding: groth16.Plain.String(), // the encoding that the local chain's program accepts
	}
	// The last transactions may not be finalized yet.
	a.box.Chain.Finalize()
	if _, err := a.box.Ledger(ctx); err != nil {
		e.LedgerFault = err.Error()
	}
	last, err := a.chainReader.Client.GetSlot(ctx, rpc.CommitmentFinalized)
	if err != nil {
		return nil, fmt.Errorf("read the finalized slot: %w", err)
	}
	if e.Transactions, err = a.chainReader.Transactions(ctx, last); err != nil {
		return nil, err
	}
	for i := range e.Transactions {
		e.Transactions[i].Rent = shieldpool.Rent(a.box.Chain.RentAt(e.Transactions[i].Slot))
	}
	e.Vault.Opening = a.vaultOpening
	if err := a.chainReader.FindLeftAccounts(ctx, a.market.VaultSOL, e); err != nil {
		return nil, err
	}
	if err := a.database.withConnection(ctx, func(conn *pgx.Conn) error { return a.gatherRows(ctx, conn, e) }); err != nil {
		return nil, err
	}
	return e, a.search(e, metricsPages)
}

// gatherRows reads the database, and the payers' balances on the chain.
func (a *arena) gatherRows(ctx context.Context, conn *pgx.Conn, e *verify.Evidence) error {
	for _, key := range a.box.Payers {
		payer := verify.Payer{Key: key.PublicKey(), Opening: a.openingBalances[key.PublicKey()]}
		var err error
		if payer.Closing, err = a.chainReader.Balance(ctx, payer.Key); err != nil {
			return err
		}
		if payer.Funded, err = a.funded(ctx, payer.Key); err != nil {
			return err
		}
		if payer.LedgerOpening, err = gather.LedgerOpening(ctx, conn, payer.Key); err != nil {
			return err
		}
		e.Payers = append(e.Payers, payer)
	}
	return gather.Rows(ctx, conn, e)
}

// swapStatuses asks for every swap in the database, including those whose clients got no
// answer. If the list cannot be read, every swap is missing, and the checks report that.
func (a *arena) swapStatuses(ctx context.Context) map[uuid.UUID]verify.SwapStatus {
	out := make(map[uuid.UUID]verify.SwapStatus)
	_ = a.database.withConnection(ctx, func(conn *pgx.Conn) error {
		ids, err := gather.Swaps(ctx, conn)
		for i, id := range ids {
			out[id] = gather.SwapStatus(ctx, a.http, a.relays[i%len(a.relays)].URL, id)
		}
		return err
	})
	return out
}

func (a *arena) say(format string, args ...any) {
	fmt.Fprintf(a.o.Progress, "%7.1f s  %s\n", time.Since(a.began).Seconds(), fmt.Sprintf(format, args...))
}
