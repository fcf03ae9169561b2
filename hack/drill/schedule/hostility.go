package schedule

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

const (
	// lieGap and attackGap are the mean times between two lies and between two attacks.
	lieGap, attackGap = 2 * time.Second, 4 * time.Second
	// lastLieFrom and lastLieTo are the shares of the duration between which a lie that
	// outlasts the load starts.
	lastLieFrom, lastLieTo = 0.8, 0.95
)

// hostility draws the events of a hostile endpoint and hostile clients. It uses random
// generators of its own, so that the other events of a seed are the same without them.
func (m *maker) hostility() (events []Event) {
	if len(m.Lies) > 0 {
		m.rand, m.deck = rand.New(rand.NewPCG(m.Seed, 0x6c696573)), nil //nolint:gosec // a schedule has to be repeatable
		events = append(events, m.lies()...)
	}
	if len(m.Attacks) > 0 {
		m.rand, m.deck = rand.New(rand.NewPCG(m.Seed, 0x61747461636b)), nil //nolint:gosec // as above
		events = append(events, m.events(func() []Event { return deckOf(Attack, m.Attacks) }, attackGap)...)
	}
	return events
}

// lies draws the lies of one endpoint. In a quarter of the seeds it tells one lie from the
// start until every outcome is final. In another quarter the last of many lies lasts that
// long. Otherwise, or when no lie is allowed to, the endpoint is honest after the load.
func (m *maker) lies() (events []Event) {
	m.liar = m.rand.IntN(m.Endpoints)
	first, all := time.Duration(calm*float64(m.Duration)), m.Duration
	deck := func() []Event { return deckOf(Lie, m.Lies) }
	lasting := func(at time.Duration) Event {
		return Event{At: at, For: all - at, Kind: Lie, Target: m.liar, Fault: m.Lasting[m.rand.IntN(len(m.Lasting))], Lasts: true}
	}
	switch n := m.rand.IntN(4); {
	case n == 0 && len(m.Lasting) > 0:
		return []Event{lasting(first)}
	case n == 1 && len(m.Lasting) > 0:
		last := time.Duration((lastLieFrom + m.rand.Float64()*(lastLieTo-lastLieFrom)) * float64(all))
		m.Duration = last // the other lies have ended by then
		events = m.events(deck, lieGap)
		m.Duration = all
		return append(events, lasting(last))
	default:
		return m.events(deck, lieGap)
	}
}

// ChooseHostility chooses the number of endpoints, the false claims of one of them, and the
// attacks of hostile clients. One of two endpoints is hostile when the seed is even, and one
// of three when it ends in 5.
func ChooseHostility(who, lies string, seed uint64, allLies, allAttacks []string) (endpoints int, lying, attacks []string, err error) {
	if who == "seed" {
		switch {
		case seed%2 == 0:
			who = "two"
		case seed%10 == 5:
			who = "three"
		default:
			who = "clients"
		}
	}
	endpoints, lying, attacks = 2, allLies, allAttacks
	if lies != "" {
		lying = strings.Split(lies, ",")
	}
	switch who {
	case "none":
		return endpoints, nil, nil, nil
	case "clients":
		return endpoints, nil, attacks, nil
	case "two":
		return endpoints, lying, attacks, nil
	case "three":
		return 3, lying, attacks, nil
	default:
		return 0, nil, nil, fmt.Errorf("hostility is %q, expected seed, two, three, clients or none", who)
	}
}
