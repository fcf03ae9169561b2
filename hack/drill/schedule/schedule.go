// Package schedule decides from a seed which faults a drill has, and when.
package schedule

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is a kind of event.
type Kind string

// The kinds of events.
const (
	// KillRelay ends a relay by SIGKILL and starts it again after the event.
	KillRelay Kind = "kill relay"
	// StopRelay ends a relay by SIGTERM, as a rolling update does, and starts it again once
	// it has exited and the event is over.
	StopRelay Kind = "stop relay"
	// StopPostgres shuts the database down cleanly for the event's time.
	StopPostgres Kind = "stop Postgres"
	// CrashPostgres shuts the database down at once, without flushing.
	CrashPostgres Kind = "crash Postgres"
	// CutConnections ends every connection to the database.
	CutConnections Kind = "cut connections"
	// Fault puts a fault on an RPC endpoint for the event's time.
	Fault Kind = "fault"
	// Fork undoes blocks of the chain that are not finalized.
	Fork Kind = "fork"
	// SkipSlots lets slots pass without a block.
	SkipSlots Kind = "skip slots"
	// Fund gives the fee payers new lamports once they have run dry. It happens once
	// in every drill.
	Fund Kind = "fund payers"
	// MovePrice moves the market's price, and moves it back after the event's time.
	MovePrice Kind = "move price"
	// RouterFault makes the relays' router fail or lie for the event's time.
	RouterFault Kind = "router"
	// Meddle makes strangers act on unfinished swaps for the event's time.
	Meddle Kind = "strangers"
	// Burst multiplies the load for the event's time.
	Burst Kind = "burst"
	// Lie makes the hostile endpoint lie for the event's time.
	Lie Kind = "lie"
	// Attack runs a hostile client for the event's time.
	Attack Kind = "attack"
	// ChangeRent changes the chain's rate of rent, and changes it back after the event's time.
	ChangeRent Kind = "rent"
	// ChangeSlotTime changes the time of a slot, and changes it back after the event's time.
	ChangeSlotTime Kind = "slot time"
	// SignerFault makes a payer's key service fail or sign wrongly for the event's time.
	SignerFault Kind = "signer"
	// Migrate moves the chain to Alpenglow's consensus, with a pause of the event's time in
	// which nothing lands. It happens once in every drill.
	Migrate Kind = "migrate consensus"
)

// Event is one fault of the drill.
type Event struct {
	// At is the time from the start of the load. For is the duration, or 0 for none.
	At, For time.Duration
	Kind    Kind
	// Target is the index of the relay or endpoint.
	Target int
	// Fault names the fault for Fault, RouterFault and Lie, the action of strangers or hostile
	// clients for Meddle and Attack, and for Fork the transactions' fate: lost, replayed or mixed.
	Fault string
	// Amount is the number of blocks of a fork or of skipped slots, the factor of a burst,
	// the market's new price or the new slot time, in percent of the usual, or the new rent
	// in lamports a byte.
	Amount int
	// Lasts reports that a lie goes on after the load, until every outcome is final.
	Lasts bool
}

// String describes the event for the report.
func (e Event) String() string {
	text := fmt.Sprintf("%6.1f s  %s", e.At.Seconds(), e.Kind)
	switch e.Kind {
	case KillRelay, StopRelay:
		text += fmt.Sprintf(" %d", e.Target+1)
	case Fault:
		text += fmt.Sprintf(" %s on endpoint %d", e.Fault, e.Target+1)
	case Fork:
		text += fmt.Sprintf(" of %d blocks, transactions %s", e.Amount, e.Fault)
	case SkipSlots:
		text += fmt.Sprintf(", %d", e.Amount)
	case MovePrice:
		text += fmt.Sprintf(" to %d %%", e.Amount)
	case Lie:
		text += fmt.Sprintf(" of endpoint %d: %s", e.Target+1, e.Fault)
	case RouterFault, SignerFault, Meddle, Attack:
		text += " " + e.Fault
	case Burst:
		text += fmt.Sprintf(", %d times the load", e.Amount)
	case ChangeRent:
		text += fmt.Sprintf(" of %d lamports a byte", e.Amount)
	case ChangeSlotTime:
		text += fmt.Sprintf(" of %d %%", e.Amount)
	case StopPostgres, CrashPostgres, CutConnections, Fund, Migrate:
	}
	switch {
	case e.Lasts:
		text += ", until every outcome is final"
	case e.For > 0:
		text += fmt.Sprintf(", for %.1f s", e.For.Seconds())
	}
	return text
}

// Options are the parameters of a schedule.
type Options struct {
	Seed uint64
	// Duration is how long load and faults last.
	Duration time.Duration
	// Relays and Endpoints are the numbers of relays and RPC endpoints.
	Relays, Endpoints int
	// Faults are the names of the faults that endpoints can have. Hard are those that make
	// an endpoint nearly useless. They affect all endpoints at once only now and then,
	// because otherwise nothing would progress.
	Faults, Hard []string
	// Kinds are the kinds that can happen, each once in the deck that events are drawn
	// from; a kind that is listed twice happens twice as often.
	Kinds []Kind
	// RouterFaults are the names of the router's faults. Without any, the market and
	// the router have no events.
	RouterFaults []string
	// SignerFaults are the names of the key service's faults; without any, it has none.
	SignerFaults []string
	// Strangers are the names of the actions of strangers on swaps.
	Strangers []string
	// Lies are the names of a hostile endpoint's lies; without any, no endpoint is hostile.
	// Lasting are the lies that it can tell for the whole drill. Attacks are the names of
	// the attacks of hostile clients.
	Lies, Lasting, Attacks []string
	// MaxForked bounds the blocks that a fork undoes.
	MaxForked int
}

// AllKinds lists every kind as often as it should happen in one deck. Fault is not listed:
// the deck has each fault itself.
func AllKinds() []Kind {
	return []Kind{
		KillRelay, KillRelay, KillRelay, StopRelay, StopRelay, StopPostgres, CrashPostgres, CutConnections, CutConnections,
		Fork, Fork, SkipSlots, Burst,
	}
}

// The payers are funded between these shares of the duration.
const (
	FundedFrom = 0.5
	fundedTo   = 0.65
)

const (
	// calm is the event-free share at the start of the duration.
	calm = 0.05
	// meanGap is the mean time between two events. marketGap is that between two events
	// of market and router, which are drawn separately.
	meanGap, marketGap = 2 * time.Second, 3 * time.Second
	// signerGap is the mean time between two events of the key service.
	signerGap = 8 * time.Second
	// priceMoves is the number of price moves in a deck, which has each router fault once.
	priceMoves = 8
	// meddlings is the number of times that a deck has each action of strangers.
	meddlings = 3
	// routerFaults is how many faults the router can have at once.
	routerFaults = 2
	// longDrill is the duration from which events last as long as in the field; a shorter
	// drill shortens them.
	longDrill = 90 * time.Second
	// minScale limits the shortening: an event too short to be noticed has no effect.
	minScale = 0.3
)

// Make draws a schedule, in order of time. Equal options give equal schedules.
//
// Events come from a deck of every kind and every fault, which is shuffled again when it is
// empty, so that a long enough drill has them all. An event is deferred while its target is
// in use: the relay or Postgres is down already.
func Make(o Options) []Event {
	m := &maker{Options: o, rand: rand.New(rand.NewPCG(o.Seed, 0x6472696c6c)), until: make(map[string]time.Duration)} //nolint:gosec // a schedule that repeats needs no secure randomness
	funding := FundedFrom + m.rand.Float64()*(fundedTo-FundedFrom)
	events := []Event{{At: time.Duration(funding * float64(o.Duration)), Kind: Fund}}
	events = append(events, m.events(m.wholeDeck, meanGap)...)
	if len(o.RouterFaults) > 0 {
		// These draws are separate, so that the other events of a seed are the same without swaps.
		m.rand, m.deck = rand.New(rand.NewPCG(o.Seed, 0x6d61726b6574)), nil //nolint:gosec // as above
		events = append(events, m.events(m.marketDeck, marketGap)...)
	}
	events = append(events, m.hostility()...)
	events = m.chainChanges(events)
	if len(o.SignerFaults) > 0 { // drawn separately, as above
		m.rand, m.deck = rand.New(rand.NewPCG(o.Seed, 0x7369676e6572)), nil //nolint:gosec // as above
		events = append(events, m.events(func() []Event { return deckOf(SignerFault, o.SignerFaults) }, signerGap)...)
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return events
}

// events draws from decks of one type until the load ends.
func (m *maker) events(deck func() []Event, gap time.Duration) (events []Event) {
	at := time.Duration(calm * float64(m.Duration))
	for {
		at += time.Duration(m.rand.ExpFloat64() * float64(min(gap, m.Duration/12)))
		if at >= m.Duration {
			return events
		}
		if e, ok := m.drawEvent(deck, at); ok {
			events = append(events, e)
		}
	}
}

type maker struct {
	Options
	rand *rand.Rand
	deck []Event
	// until is the time at which a target is free again.
	until map[string]time.Duration
	// liar is the hostile endpoint.
	liar int
}

// drawEvent takes the first event of the deck with a free target.
func (m *maker) drawEvent(deck func() []Event, at time.Duration) (Event, bool) {
	if len(m.deck) == 0 {
		m.deck = deck()
		m.rand.Shuffle(len(m.deck), func(i, k int) { m.deck[i], m.deck[k] = m.deck[k], m.deck[i] })
	}
	for i, e := range m.deck {
		if e.For = m.length(e.Kind); at+e.For > m.Duration {
			e.For = m.Duration - at
		}
		e.At = at
		if m.assignTarget(&e) {
			m.deck = slices.Delete(m.deck, i, i+1)
			return e, true
		}
	}
	return Event{}, false
}

func (m *maker) wholeDeck() (deck []Event) {
	for _, kind := range m.Kinds {
		deck = append(deck, Event{Kind: kind})
	}
	return append(deck, deckOf(Fault, m.Faults)...)
}

func (m *maker) marketDeck() (deck []Event) {
	for range priceMoves {
		deck = append(deck, Event{Kind: MovePrice})
	}
	for range meddlings {
		deck = append(deck, deckOf(Meddle, m.Strangers)...)
	}
	return append(deck, deckOf(RouterFault, m.RouterFaults)...)
}

// deckOf returns an event of the kind for each name.
func deckOf(kind Kind, names []string) (deck []Event) {
	for _, name := range names {
		deck = append(deck, Event{Kind: kind, Fault: name})
	}
	return deck
}

// lengths are the shortest and longest durations of the kinds of events, in seconds, in a
// long drill. Kinds that are not listed have no duration.
var lengths = map[Kind][2]float64{
	KillRelay: {1, 8}, StopRelay: {1, 8}, StopPostgres: {1, 6}, CrashPostgres: {1, 6}, Fault: {4, 16}, Burst: {4, 10},
	MovePrice: {2, 12}, RouterFault: {3, 8}, Meddle: {4, 8}, Attack: {4, 8}, Lie: {5, 20},
	SignerFault: {4, 10}, ChangeRent: {8, 25}, ChangeSlotTime: {8, 25}, Migrate: {10, 20},
}

func (m *maker) length(kind Kind) time.Duration {
	between, lasts := lengths[kind]
	if !lasts {
		return 0
	}
	scale := max(minScale, min(1, float64(m.Duration)/float64(longDrill)))
	return time.Duration((between[0] + m.rand.Float64()*(between[1]-between[0])) * scale * float64(time.Second))
}

// minPrice and maxPrice bound the changed price, in percent: both are far beyond the
// slippage that wallets allow between quote and minimum.
const minPrice, maxPrice = 60, 140

// assignTarget chooses and reserves the event's target. It returns false when none is free.
func (m *maker) assignTarget(e *Event) bool {
	switch e.Kind {
	case KillRelay, StopRelay:
		// Two relays may be down together, but not all relays.
		down := 0
		for i := range m.Relays {
			if m.until[fmt.Sprint("relay", i)] > e.At {
				down++
			}
		}
		return down < max(m.Relays-1, 1) && m.target(e, "relay", m.Relays)
	case Fault:
		return m.fault(e)
	case StopPostgres, CrashPostgres, CutConnections:
		return m.target(e, "postgres", 1)
	case Fork:
		e.Fault = []string{"lost", "replayed", "mixed"}[m.rand.IntN(3)]
		e.Amount = 1 + m.rand.IntN(max(m.MaxForked, 1))
	case SkipSlots:
		e.Amount = 1 + m.rand.IntN(8)
	case MovePrice:
		e.Amount = minPrice + m.rand.IntN(maxPrice-minPrice+1)
		return m.target(e, "price", 1)
	case RouterFault:
		return m.target(e, "router", routerFaults)
	case Meddle, Attack:
		return m.target(e, e.Fault, 1)
	case Lie:
		return m.reserve(e, "lie", m.liar)
	case SignerFault, ChangeRent, ChangeSlotTime:
		return m.target(e, string(e.Kind), 1)
	case Burst:
		e.Amount = 2 + m.rand.IntN(4)
		return m.target(e, "burst", 1)
	}
	return true
}

// lastEndpointChance is the probability that a hard fault may affect the last good endpoint.
const lastEndpointChance = 0.2

func (m *maker) fault(e *Event) bool {
	if !slices.Contains(m.Hard, e.Fault) {
		return m.target(e, e.Fault, m.Endpoints)
	}
	var good, bad []int
	for i := range m.Endpoints {
		if m.until[fmt.Sprint("hard", i)] <= e.At {
			good = append(good, i)
		} else {
			bad = append(bad, i)
		}
	}
	mayTakeLast := m.rand.Float64() < lastEndpointChance
	if len(good) == 0 || len(good) == 1 && !mayTakeLast {
		// Add the fault to an endpoint that is already bad.
		return len(bad) > 0 && m.reserve(e, e.Fault, bad[m.rand.IntN(len(bad))])
	}
	target := good[m.rand.IntN(len(good))]
	if !m.reserve(e, e.Fault, target) {
		return false
	}
	m.until[fmt.Sprint("hard", target)] = e.At + e.For
	return true
}

// recoveryTime is how long a target stays free after an event, so that a relay is up long enough to
// claim work before the next event.
const recoveryTime = time.Second

func (m *maker) target(e *Event, name string, count int) bool {
	first := m.rand.IntN(count)
	for i := range count {
		if m.reserve(e, name, (first+i)%count) {
			return true
		}
	}
	return false
}

// reserve reserves one target, unless another event has it.
func (m *maker) reserve(e *Event, name string, target int) bool {
	key := fmt.Sprint(name, target)
	if m.until[key] > e.At {
		return false
	}
	m.until[key] = e.At + e.For + recoveryTime
	e.Target = target
	return true
}
