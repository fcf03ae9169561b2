package chainwatch

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

func TestSpendingIsTheMedianOfTheLastHour(t *testing.T) {
	t.Parallel()
	const sol = 1_000_000_000
	tests := map[string]struct {
		// balance in each minute, oldest first.
		balance   func(minute int) uint64
		minutes   int
		want      uint64
		wantKnown bool
	}{
		"a steady rate":         {func(m int) uint64 { return 10*sol - uint64(m)*1000 }, 70, 60_000, true},
		"nothing is spent":      {func(int) uint64 { return sol }, 70, 0, true},
		"too short a history":   {func(m int) uint64 { return sol - uint64(m) }, 9, 0, false},
		"a history of one part": {func(m int) uint64 { return sol - uint64(m)*10 }, 10, 600, true},
		"additions are ignored": {func(m int) uint64 { return sol + uint64(m/10)*sol - uint64(m%10)*1000 }, 60, 9 * 1000 * 6, true},
		"one burst does not move the median": {func(m int) uint64 {
			if m >= 30 {
				return sol - uint64(m)*100
			}
			return 5*sol - uint64(m)*100
		}, 60, 6000, true},
		"what was spent hours ago is forgotten": {func(m int) uint64 {
			if m < 100 {
				return 10*sol - uint64(m)*1_000_000
			}
			return 9 * sol
		}, 200, 0, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, start := new(balanceHistory), time.Unix(1_000_000, 0)
			for m := range test.minutes + 1 {
				b.add(start.Add(time.Duration(m)*time.Minute), test.balance(m))
			}
			got, known := b.perHour()
			if got != test.want || known != test.wantKnown {
				t.Errorf("got %d lamports an hour, known %v, want %d, %v", got, known, test.want, test.wantKnown)
			}
			if n := len(b.samples); n > 62 {
				t.Errorf("%d samples are kept, want no more than an hour's", n)
			}
		})
	}
}

func TestSamplesAreBoundedWhateverTheInterval(t *testing.T) {
	t.Parallel()
	b, start := new(balanceHistory), time.Unix(1_000_000, 0)
	for i := range 720 { // two hours, every ten seconds
		b.add(start.Add(time.Duration(i)*10*time.Second), uint64(1_000_000-i*10))
	}
	if got, known := b.perHour(); !known || got < 3590 || got > 3610 {
		t.Errorf("got %d lamports an hour, known %v, want 3600", got, known)
	}
	if n := len(b.samples); n > 75 {
		t.Errorf("%d samples are kept, want about one a minute", n)
	}
	b = new(balanceHistory)
	for i := range 3 { // an hour apart, which is the longest interval
		b.add(start.Add(time.Duration(i)*time.Hour), uint64(1_000_000-i*600))
	}
	if got, known := b.perHour(); !known || got != 600 {
		t.Errorf("got %d lamports an hour, known %v, want 600", got, known)
	}
}

func TestRunway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		payer  Payer
		want   time.Duration
		wantOK bool
	}{
		"the balance lasts 2 hours": {Payer{Lamports: 100, Spending: 50, SpendingKnown: true}, 2 * time.Hour, true},
		"nothing is spent":          {Payer{Lamports: 100, SpendingKnown: true}, 0, false},
		"the rate is unknown":       {Payer{Lamports: 100}, 0, false},
		"limited to a century":      {Payer{Lamports: 1 << 63, Spending: 1, SpendingKnown: true}, 876_000 * time.Hour, true},
	} {
		if got, ok := test.payer.Runway(); got != test.want || ok != test.wantOK {
			t.Errorf("%s: got %s, %v, want %s, %v", name, got, ok, test.want, test.wantOK)
		}
	}
}

func TestOnlyChangesOfTheStatusSendEvents(t *testing.T) {
	t.Parallel()
	a, b := solana.PublicKey{1}, solana.PublicKey{2}
	base := func() excerpt {
		return excerpt{
			state: poolcheck.OK, reason: poolcheck.ReasonInitialised, message: "fine", leaves: 10_000, leavesKnown: true,
			payers: map[solana.PublicKey]payerExcerpt{a: {1000, 10 * time.Hour, true}, b: {0, 0, false}},
		}
	}
	set := func(key solana.PublicKey, p payerExcerpt) func(*excerpt) {
		return func(s *excerpt) { s.payers[key] = p }
	}
	tests := map[string]struct {
		change func(*excerpt)
		want   bool
	}{
		"nothing":                          {func(*excerpt) {}, false},
		"another reason":                   {func(s *excerpt) { s.reason = poolcheck.ReasonTreeFull }, true},
		"another message":                  {func(s *excerpt) { s.message = "worse" }, true},
		"a few leaves more":                {func(s *excerpt) { s.leaves += 99 }, false},
		"a hundredth more of the leaves":   {func(s *excerpt) { s.leaves += 100 }, true},
		"leaves that are no longer known":  {func(s *excerpt) { s.leavesKnown = false }, true},
		"a little less of a balance":       {set(a, payerExcerpt{980, 10 * time.Hour, true}), false},
		"a twentieth less of a balance":    {set(a, payerExcerpt{950, 10 * time.Hour, true}), true},
		"a threshold is crossed":           {set(a, payerExcerpt{974, 10 * time.Hour, true}), true},
		"an empty wallet is funded":        {set(b, payerExcerpt{1, 0, false}), true},
		"a little less of a runway":        {set(a, payerExcerpt{1000, 9 * time.Hour, true}), false},
		"a fifth less of a runway":         {set(a, payerExcerpt{1000, 8 * time.Hour, true}), true},
		"a runway that is no longer known": {set(a, payerExcerpt{1000, 0, false}), true},
		"one more payer":                   {set(solana.PublicKey{3}, payerExcerpt{}), true},
		"one payer fewer":                  {func(s *excerpt) { delete(s.payers, b) }, true},
		"one payer replaced by another":    {func(s *excerpt) { delete(s.payers, b); s.payers[solana.PublicKey{3}] = payerExcerpt{} }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := base(), base()
			test.change(&after)
			if got := before.differs(&after, []uint64{975}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
