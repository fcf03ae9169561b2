package txmgr

import (
	"slices"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestUrgencyChoosesTheLaneAndItsTip(t *testing.T) {
	t.Parallel()
	first := Lane{Name: "first", Accounts: []solana.PublicKey{{1}, {2}}, MinTip: 1000, MaxTip: 5000}
	second := Lane{Name: "second", Accounts: []solana.PublicKey{{3}}, MinTip: 300, MaxTip: 300}
	always := Lane{Name: "always", Accounts: []solana.PublicKey{{4}}, MinTip: 10, MaxTip: 1 << 62, Always: true}
	expired := func(tips ...uint64) (out []Attempt) {
		for _, tip := range tips {
			out = append(out, Attempt{Tip: tip})
		}
		return out
	}
	for name, test := range map[string]struct {
		lanes  []Lane
		dead   []Attempt
		urgent bool
		lane   string
		tip    uint64
	}{
		"no lanes":                    {nil, expired(0, 0), true, "", 0},
		"a first attempt pays no tip": {[]Lane{first, second}, nil, false, "", 0},
		"unless it is urgent":         {[]Lane{first, second}, nil, true, "first", 1000},
		"or a lane takes all":         {[]Lane{first, always}, nil, false, "always", 10},
		"an attempt that failed on the chain is no sign":                 {[]Lane{first}, []Attempt{{Paid: 5000}}, false, "", 0},
		"nor is one that preflight rejected":                             {[]Lane{first}, []Attempt{{Rejected: true}}, false, "", 0},
		"an expired attempt leads to the next lane":                      {[]Lane{first, second}, expired(0), false, "second", 300},
		"two lead back to the first, and a tip in vain doubles the next": {[]Lane{first, second}, expired(0, 300), false, "first", 2000},
		"a lane that takes all doubles its tip after the first":          {[]Lane{always}, expired(10), false, "always", 20},
		"the tip has a bound":                                            {[]Lane{first}, expired(1, 1, 1), true, "first", 5000},
		"doubling never overflows":                                       {[]Lane{always}, slices.Repeat(expired(1), 90), true, "always", 10 << 20},
	} {
		m := &Manager{Options: Options{Lanes: test.lanes}}
		lane, tip := m.chooseLane(&Job{Lease: Lease{ID: uuid.UUID{}}, Dead: test.dead}, &Draft{Urgent: test.urgent})
		if lane != test.lane || tip.Lamports != test.tip || (tip.To == solana.PublicKey{}) != (lane == "") {
			t.Errorf("%s: lane %q with %d lamports to %s, want %q with %d", name, lane, tip.Lamports, tip.To, test.lane, test.tip)
		}
	}
}

func TestTheLaneThatLandsComesFirst(t *testing.T) {
	t.Parallel()
	m := &Manager{Options: Options{Lanes: []Lane{
		{Name: "loses", Accounts: []solana.PublicKey{{1}}, MinTip: 1, MaxTip: 1}, {Name: "lands", Accounts: []solana.PublicKey{{2}}, MinTip: 1, MaxTip: 1},
	}}}
	choice := func() string {
		lane, _ := m.chooseLane(&Job{}, &Draft{Urgent: true})
		return lane
	}
	if choice() != "loses" {
		t.Errorf("without results the lane is %q, want the first in the list", choice())
	}
	m.results.observe("loses", false)
	m.results.observe("lands", true)
	if choice() != "lands" {
		t.Errorf("after an expired attempt the lane is %q, want the one that lands", choice())
	}
	for range 200 { // the loser works again, and the other lane fails now and then
		m.results.observe("loses", true)
	}
	m.results.observe("lands", false)
	if choice() != "loses" {
		t.Errorf("after many landings the lane is %q, want the one that works again", choice())
	}
}

func TestPricesRiseWithExpiredAttempts(t *testing.T) {
	t.Parallel()
	p := &priceCache{rule: PriceRule{Floor: 10, Cap: 10_000}}
	for name, test := range map[string]struct {
		price       uint64
		expired     int
		landedShare float64
		want        uint64
	}{
		"all land":                             {100, 0, 1, 100},
		"half of all expire":                   {100, 0, 0.5, 250},
		"none lands":                           {100, 0, 0, 400},
		"one attempt of this job expired":      {2000, 1, 1, 4000},
		"a price of zero rises too":            {0, 1, 1, 2000},
		"the cap bounds it":                    {2000, 9, 0.5, 10_000},
		"the cap bounds a price of the market": {20_000, 0, 1, 10_000},
	} {
		if got := p.escalated(test.price, test.expired, test.landedShare); got != test.want {
			t.Errorf("%s: price %d, want %d", name, got, test.want)
		}
	}
	if got := (&priceCache{}).escalated(0, 3, 0); got != 0 {
		t.Errorf("with a cap of 0 the price is %d, want 0", got)
	}
}

// A failure that only the tip can have caused ends no submission.
func TestAFailedTipEndsNothing(t *testing.T) {
	t.Parallel()
	var class shieldpool.Class
	m := &Manager{Options: Options{Class: func(Purpose, shieldpool.Format, *shieldpool.TransactionError) shieldpool.Class { return class }}}
	for _, class = range []shieldpool.Class{shieldpool.ClassRecipientRent, shieldpool.ClassBug} {
		if got := m.classOf(&Attempt{Tip: 1, Lane: "x"}, nil); got != shieldpool.ClassTransient {
			t.Errorf("with a tip, %s counts as %s, want %s", class, got, shieldpool.ClassTransient)
		}
		if got := m.classOf(&Attempt{}, nil); got != class {
			t.Errorf("without a tip, %s counts as %s", class, got)
		}
	}
	class = shieldpool.ClassSpent
	if got := m.classOf(&Attempt{Tip: 1, Lane: "x"}, nil); got != class {
		t.Errorf("with a tip, %s counts as %s", class, got)
	}
}
