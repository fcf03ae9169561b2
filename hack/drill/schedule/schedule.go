// Package schedule decides from a seed what goes wrong in a drill, and when.
package schedule

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is a sort of event.
type Kind string

// The kinds.
const (
	// KillRelay ends a relay by SIGKILL and starts it again after the event.
	KillRelay Kind = "kill relay"
	// StopRelay ends a relay by SIGTERM, as a rolling deploy does, and starts it
	// again once it has gone and the event is over.
	StopRelay Kind = "stop relay"
	// StopPostgres shuts the database down in order for the event's time.
	StopPostgres Kind = "stop Postgres"
	// CrashPostgres shuts it down at once, without flushing.
	CrashPostgres Kind = "crash Postgres"
	// CutConnections ends every connection to the database.
	CutConnections Kind = "cut connections"
	// Fault puts a fault on an RPC endpoint for the event's time.
	Fault Kind = "fault"
	// Fork undoes blocks of the chain that are not finalized.
	Fork Kind = "fork"
	// SkipSlots lets slots pass without a block.
	SkipSlots Kind = "skip slots"
	// Fund gives the fee payers, who are dry by then, new lamports. It comes once
	// in every drill.
	Fund Kind = "fund payers"
	// MovePrice moves the market's price and, after the event's time, back.
	MovePrice Kind = "move price"
	// RouterFault has the relays' router fail or lie for the event's time.
	RouterFault Kind = "router"
	// Meddle has strangers act on swaps between their legs for the event's time.
	Meddle Kind = "strangers"
	// Burst multiplies the load for the event's time.
	Burst Kind = "burst"
	// Lie has the hostile endpoint claim what is not so for the event's time.
	Lie Kind = "lie"
	// Attack has a hostile client at work for the event's time.
	Attack Kind = "attack"
)

// Event is one thing that goes wrong.
type Event struct {
	// At is from the begin of the load; For is 0 for what has no duration.
	At, For time.Duration
	Kind    Kind
	// Target is the index of the relay or endpoint.
	Target int
	// Fault names the fault, for the kinds Fault, RouterFault and Lie, and what strangers
	// and hostile clients do for Meddle and Attack; for a fork it is what becomes of the transactions: lost, replayed or mixed.
	Fault string
	// Amount is the number of blocks of a fork and of skipped slots, the factor
	// of a burst, and the price that the market moves to, in percent.
	Amount int
	// Stays says that a lie goes on after the load, until every outcome is final.
	Stays bool
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
	case RouterFault, Meddle, Attack:
		text += " " + e.Fault
	case Burst:
		text += fmt.Sprintf(", %d times the load", e.Amount)
	case StopPostgres, CrashPostgres, CutConnections, Fund:
	}
	switch {
	case e.Stays:
		text += ", until every outcome is final"
	case e.For > 0:
		text += fmt.Sprintf(", for %.1f s", e.For.Seconds())
	}
	return text
}

// Options are what a schedule is made for.
type Options struct {
	Seed uint64
	// Duration is how long load and faults last.
	Duration time.Duration
	// Relays and Endpoints are how many there are.
	Relays, Endpoints int
	// Faults are the names of the faults that endpoints can have. Hard are those
	// of them with which an endpoint is of little use: they fall on all endpoints
	// at once now and then, but not most of the time, in which nothing would move.
	Faults, Hard []string
	// Kinds are the kinds that can happen, each once in the deck from which
	// events are drawn; a kind that is listed twice happens twice as often.
	Kinds []Kind
	// RouterFaults are the names of what the router can do. Without any the
	// market is at rest.
	RouterFaults []string
	// Strangers are the names of what strangers do to swaps.
	Strangers []string
	// Lies are the names of what a hostile endpoint claims: with any, one of the
	// endpoints is hostile. Lasting are those of them that it may tell for the whole
	// drill. Attacks are the names of what hostile clients do.
	Lies, Lasting, Attacks []string
	// MostForked bounds the blocks that a fork undoes.
	MostForked int
}

// AllKinds is every kind, as often as it should happen among 19 events; Fault
// stands for its faults and is not among them.
func AllKinds() []Kind {
	return []Kind{
		KillRelay, KillRelay, KillRelay, StopRelay, StopRelay, StopPostgres, CrashPostgres, CutConnections, CutConnections,
		Fork, Fork, SkipSlots, Burst,
	}
}

// Fund comes between these shares of the duration.
const (
	FundedFrom = 0.5
	fundedTo   = 0.65
)

const (
	// calm is the share of the duration at its begin in which nothing happens.
	calm = 0.05
	// meanGap is the mean time between two events, marketGap that between two of
	// market and router, which come beside.
	meanGap, marketGap = 2 * time.Second, 3 * time.Second
	// priceMoves is how often the price moves while every router fault comes once.
	priceMoves = 8
	// meddlings is how often strangers do each thing meanwhile.
	meddlings = 3
	// routerFaults is how many the router can have at once.
	routerFaults = 2
	// longDrill is the duration from which events last as long as they do in
	// the field; in a shorter drill they are shorter.
	longDrill = 90 * time.Second
	// leastScale bounds that: what is too short to be noticed breaks nothing.
	leastScale = 0.3
)

// Make draws a schedule, in order of time. The same options give the same.
//
// Events come from a deck that holds every kind and every fault, shuffled again
// when it is empty, so that a drill that is long enough has them all. An event
// whose place is taken (the relay is down already, Postgres too) is put off.
func Make(o Options) []Event {
	m := &maker{Options: o, rand: rand.New(rand.NewPCG(o.Seed, 0x6472696c6c)), until: make(map[string]time.Duration)} //nolint:gosec // a schedule that repeats needs no secure randomness
	funding := FundedFrom + m.rand.Float64()*(fundedTo-FundedFrom)
	events := []Event{{At: time.Duration(funding * float64(o.Duration)), Kind: Fund}}
	events = append(events, m.events(m.wholeDeck, meanGap)...)
	if len(o.RouterFaults) > 0 {
		// Draws of its own, so that the rest of a seed's schedule is what it is without swaps.
		m.rand, m.deck = rand.New(rand.NewPCG(o.Seed, 0x6d61726b6574)), nil //nolint:gosec // as above
		events = append(events, m.events(m.marketDeck, marketGap)...)
	}
	events = append(events, m.hostility()...)
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return events
}

// events draws from decks of one sort until the load ends.
func (m *maker) events(deck func() []Event, gap time.Duration) (events []Event) {
	at := time.Duration(calm * float64(m.Duration))
	for {
		at += time.Duration(m.rand.ExpFloat64() * float64(min(gap, m.Duration/12)))
		if at >= m.Duration {
			return events
		}
		if e, ok := m.draw(deck, at); ok {
			events = append(events, e)
		}
	}
}

type maker struct {
	Options
	rand *rand.Rand
	deck []Event
	// until is when a place is free again.
	until map[string]time.Duration
	// liar is the hostile endpoint.
	liar int
}

// draw takes the first event of the deck whose place is free.
func (m *maker) draw(deck func() []Event, at time.Duration) (Event, bool) {
	if len(m.deck) == 0 {
		m.deck = deck()
		m.rand.Shuffle(len(m.deck), func(i, k int) { m.deck[i], m.deck[k] = m.deck[k], m.deck[i] })
	}
	for i, e := range m.deck {
		if e.For = m.length(e.Kind); at+e.For > m.Duration {
			e.For = m.Duration - at
		}
		e.At = at
		if m.place(&e) {
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
	for _, name := range m.Faults {
		deck = append(deck, Event{Kind: Fault, Fault: name})
	}
	return deck
}

func (m *maker) marketDeck() (deck []Event) {
	for range priceMoves {
		deck = append(deck, Event{Kind: MovePrice})
	}
	for range meddlings {
		for _, name := range m.Strangers {
			deck = append(deck, Event{Kind: Meddle, Fault: name})
		}
	}
	for _, name := range m.RouterFaults {
		deck = append(deck, Event{Kind: RouterFault, Fault: name})
	}
	return deck
}

// lengths are the least and the most that an event of a kind lasts, in seconds, in a
// long drill. The others have no duration.
var lengths = map[Kind][2]float64{
	KillRelay: {1, 8}, StopRelay: {1, 8}, StopPostgres: {1, 6}, CrashPostgres: {1, 6}, Fault: {4, 16}, Burst: {4, 10},
	MovePrice: {2, 12}, RouterFault: {3, 8}, Meddle: {4, 8}, Attack: {4, 8}, Lie: {5, 20},
}

// length draws how long an event lasts.
func (m *maker) length(kind Kind) time.Duration {
	between, lasts := lengths[kind]
	if !lasts {
		return 0
	}
	scale := max(leastScale, min(1, float64(m.Duration)/float64(longDrill)))
	return time.Duration((between[0] + m.rand.Float64()*(between[1]-between[0])) * scale * float64(time.Second))
}

// leastPrice and mostPrice bound where a price moves, in percent: both are far
// beyond what wallets leave between quote and minimum.
const leastPrice, mostPrice = 60, 140

// place chooses the event's target and takes its place; false when none is free.
func (m *maker) place(e *Event) bool {
	switch e.Kind {
	case KillRelay, StopRelay:
		// Two relays may be down together, not all.
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
		e.Amount = 1 + m.rand.IntN(max(m.MostForked, 1))
	case SkipSlots:
		e.Amount = 1 + m.rand.IntN(8)
	case MovePrice:
		e.Amount = leastPrice + m.rand.IntN(mostPrice-leastPrice+1)
		return m.target(e, "price", 1)
	case RouterFault:
		return m.target(e, "router", routerFaults)
	case Meddle, Attack:
		return m.target(e, e.Fault, 1)
	case Lie:
		return m.take(e, "lie", m.liar)
	case Burst:
		e.Amount = 2 + m.rand.IntN(4)
		return m.target(e, "burst", 1)
	}
	return true
}

// total is the chance that a hard fault may take the last good endpoint.
const total = 0.2

// fault chooses the endpoint of a fault.
func (m *maker) fault(e *Event) bool {
	if !slices.Contains(m.Hard, e.Fault) {
		return m.target(e, e.Fault, m.Endpoints)
	}
	var good []int
	for i := range m.Endpoints {
		if m.until[fmt.Sprint("hard", i)] <= e.At {
			good = append(good, i)
		}
	}
	mayTakeLast := m.rand.Float64() < total
	if len(good) == 0 || len(good) == 1 && !mayTakeLast {
		// One that is bad already may become worse.
		if len(good) == m.Endpoints {
			return false
		}
		bad := slices.DeleteFunc(indices(m.Endpoints), func(i int) bool { return slices.Contains(good, i) })
		return m.take(e, e.Fault, bad[m.rand.IntN(len(bad))])
	}
	target := good[m.rand.IntN(len(good))]
	if !m.take(e, e.Fault, target) {
		return false
	}
	m.until[fmt.Sprint("hard", target)] = e.At + e.For
	return true
}

func indices(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// rest is how long a place stays free after an event, so that a relay is up
// long enough to take work before it goes again.
const rest = time.Second

func (m *maker) target(e *Event, name string, count int) bool {
	first := m.rand.IntN(count)
	for i := range count {
		if m.take(e, name, (first+i)%count) {
			return true
		}
	}
	return false
}

// take takes one place, unless an event has it.
func (m *maker) take(e *Event, name string, target int) bool {
	place := fmt.Sprint(name, target)
	if m.until[place] > e.At {
		return false
	}
	m.until[place] = e.At + e.For + rest
	e.Target = target
	return true
}
