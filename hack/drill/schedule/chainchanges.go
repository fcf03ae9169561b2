package schedule

import (
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// chainChangeGap is the mean time between two changes of rent or slot time.
	chainChangeGap = 8 * time.Second
	// migratedFrom and migratedTo are the shares of the duration between which the
	// migration begins: late, because forks are impossible afterwards.
	migratedFrom, migratedTo = 0.66, 0.78
	// lastForkBefore is the least time between the last fork and the migration.
	lastForkBefore = time.Second
)

// Rates of rent, in lamports a byte: one that mainnet may fall to (SIMD-0437), and the one
// that it had for years.
const lowRent, highRent = 2575, 6960

// Slot times, in percent of the drill's.
const shortSlots, longSlots = 75, 200

// chainChanges adds changes of rent, slot time and consensus to the events, and takes out
// those that the migration makes impossible. It uses a random generator of its own, so that
// the other events of a seed are the same without them.
func (m *maker) chainChanges(events []Event) []Event {
	m.rand, m.deck = rand.New(rand.NewPCG(m.Seed, 0x636861696e)), nil //nolint:gosec // a schedule has to be repeatable
	at := time.Duration((migratedFrom + m.rand.Float64()*(migratedTo-migratedFrom)) * float64(m.Duration))
	migration := Event{At: at, For: min(m.length(Migrate), m.Duration-at), Kind: Migrate}
	changes := slices.DeleteFunc(m.events(chainDeck, chainChangeGap), func(e Event) bool {
		// The migration's pause is counted in slots of the usual length.
		return e.Kind == ChangeSlotTime && e.At+e.For > migration.At && e.At < migration.At+migration.For
	})
	events = slices.DeleteFunc(events, func(e Event) bool {
		return e.Kind == Fork && e.At+lastForkBefore > migration.At // Alpenglow finalizes a block at once
	})
	return append(append(events, changes...), migration)
}

func chainDeck() []Event {
	return []Event{
		{Kind: ChangeRent, Amount: lowRent}, {Kind: ChangeRent, Amount: highRent},
		{Kind: ChangeSlotTime, Amount: shortSlots}, {Kind: ChangeSlotTime, Amount: longSlots},
	}
}
