package txmgr

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// laneChain is a chain some of whose lanes take nothing.
type laneChain struct {
	Chain
	unusable string
}

func (c laneChain) LaneUsable(name string) bool { return name != c.unusable }

func TestUrgencyChoosesTheLaneAndItsTip(t *testing.T) {
	t.Parallel()
	first := Lane{Name: "first", Accounts: []solana.PublicKey{{1}, {2}}, MinTip: 1000, MaxTip: 5000}
	second := Lane{Name: "second", Accounts: []solana.PublicKey{{3}}, MinTip: 300, MaxTip: 300}
	always := Lane{Name: "always", Accounts: []solana.PublicKey{{4}}, MinTip: 10, MaxTip: 1 << 62, Always: true}
	on := func(lanes ...string) (out []Attempt) {
		for _, lane := range lanes {
			a := Attempt{Lane: lane}
			if lane != "" {
				a.Tip = 1
			}
			out = append(out, a)
		}
		return out
	}
	for name, test := range map[string]struct {
		lanes    []Lane
		dead     []Attempt
		urgent   bool
		unusable string
		lane     string
		tip      uint64
	}{
		"no lanes":                            {nil, on("", ""), true, "", "", 0},
		"a first attempt pays no tip":         {[]Lane{first, second}, nil, false, "", "", 0},
		"unless it is urgent":                 {[]Lane{first, second}, nil, true, "", "first", 1000},
		"or a lane takes all":                 {[]Lane{first, always}, nil, false, "", "always", 10},
		"a lane that takes nothing is no use": {[]Lane{first, second}, nil, true, "first", "second", 300},
		"the only lane takes nothing":         {[]Lane{first}, nil, true, "first", "", 0},
		"a failure on the chain is no sign":   {[]Lane{first}, []Attempt{{Paid: 5000}}, false, "", "", 0},
		"nor is a rejection by preflight":     {[]Lane{first}, []Attempt{{Rejected: true}}, false, "", "", 0},
		"an expired attempt is a sign":        {[]Lane{first, second}, on(""), false, "", "first", 1000},
		"a tip in vain leads to the next":     {[]Lane{first, second}, on("", "first"), false, "", "second", 300},
		"two lead back, at four times":        {[]Lane{first, second}, on("first", "second"), false, "", "first", 4000},
		"a lane that takes all doubles too":   {[]Lane{always}, on("always"), false, "", "always", 20},
		"the tip has a bound":                 {[]Lane{first}, on("first", "first", "first"), true, "", "first", 5000},
		"doubling never overflows":            {[]Lane{always}, slices.Repeat(on("always"), 90), true, "", "always", 10 << 20},
	} {
		m := &Manager{Options: Options{Lanes: test.lanes, Chain: laneChain{unusable: test.unusable}}}
		lane, tip := m.chooseLane(&Job{Lease: Lease{ID: uuid.UUID{}}, Dead: test.dead}, &Draft{Urgent: test.urgent})
		if lane != test.lane || tip.Lamports != test.tip || (tip.To == solana.PublicKey{}) != (lane == "") {
			t.Errorf("%s: lane %q with %d lamports to %s, want %q with %d", name, lane, tip.Lamports, tip.To, test.lane, test.tip)
		}
	}
}

// The attempts of one job expire one after another, as applyFates records them.
func TestAJobTriesOneLaneAfterTheOther(t *testing.T) {
	t.Parallel()
	lane := func(name string) Lane {
		return Lane{Name: name, Accounts: []solana.PublicKey{{1}}, MinTip: 1, MaxTip: 100}
	}
	m := &Manager{Options: Options{
		Lanes: []Lane{lane("a"), lane("b"), lane("c")}, Chain: laneChain{}, Store: &deadAttemptStore{}, Observer: noObserver{}, Now: time.Now, Payers: &fakePayer{},
	}}
	j := &Job{Lease: Lease{ID: uuid.New()}}
	var got []string
	for n := range byte(6) {
		lane, tip := m.chooseLane(j, &Draft{Urgent: true})
		got = append(got, lane)
		j.Live = []Attempt{{Signature: solana.Signature{n}, Lane: lane, Tip: tip.Lamports, LastValidBlockHeight: 1, BlockhashSlot: 1}}
		if _, err := m.applyFates(t.Context(), j, expiredResult()); err != nil || len(j.Live) > 0 {
			t.Fatalf("%d attempts may land (%v), want none", len(j.Live), err)
		}
	}
	if want := []string{"a", "b", "c", "a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("the job's lanes are %q, want %q", got, want)
	}
}

// expiredResult is a search that shows one attempt to be expired.
func expiredResult() *onchain.SearchResult {
	return &onchain.SearchResult{Statuses: make([]*onchain.Status, 1), Slot: 1000, FinalizedSlot: 900, FinalizedHeight: 900, ExpiredSlot: 900}
}

func TestTheLaneThatLandsComesFirst(t *testing.T) {
	t.Parallel()
	m := &Manager{Options: Options{Chain: laneChain{}, Lanes: []Lane{
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

// limitedPayer cannot pay more than most lamports, and limitedCap allows no more than that.
type limitedPayer struct {
	fakePayer
	most uint64
}

func (p *limitedPayer) Pick(ctx context.Context, lamports uint64, endsWork bool) (Payer, error) {
	if lamports > p.most {
		return nil, refusal.New(refusal.FeePayerEmpty, "no lamports")
	}
	return p.fakePayer.Pick(ctx, lamports, endsWork)
}

type limitedCap struct {
	capRecorder
	most uint64
}

func (c *limitedCap) Allow(ctx context.Context, transfer bool, lamports uint64) (func(bool), error) {
	if lamports > c.most {
		return nil, refusal.New(refusal.SpendCapReached, "the cap is reached")
	}
	return c.capRecorder.Allow(ctx, transfer, lamports)
}

// A transaction goes without its tip when only the tip is too much for the payer or the caps.
func TestATipHoldsNoTransactionBack(t *testing.T) {
	t.Parallel()
	const fee, tip = shieldpool.SignatureFee, 7000
	for name, test := range map[string]struct {
		payer, cap uint64
		want       uint64 // the tip
		err        refusal.Code
	}{
		"both allow it":              {fee + tip, fee + tip, tip, ""},
		"the payer has no more":      {fee, fee + tip, 0, ""},
		"the caps allow no more":     {fee + tip, fee, 0, ""},
		"the payer is empty anyway":  {fee - 1, fee + tip, 0, refusal.FeePayerEmpty},
		"the cap is reached anyway":  {fee + tip, fee - 1, 0, refusal.SpendCapReached},
		"neither allows more than 0": {0, 0, 0, refusal.SpendCapReached},
	} {
		payer := &limitedPayer{fakePayer{key: solana.NewWallet().PrivateKey}, test.payer}
		caps := &limitedCap{most: test.cap}
		m := &Manager{Options: Options{
			Chain: laneChain{Chain: fixedSimulation{}}, Payers: payer, Spending: caps, Rent: currentRent, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Lanes: []Lane{{Name: "lane", Accounts: []solana.PublicKey{{1}}, MinTip: tip, MaxTip: tip, Always: true}},
		}, compute: newComputeLimits(), price: newPriceCache(PriceRule{}, time.Now, nominalSlotDuration)}
		tx, err := m.prepare(t.Context(), &Job{Lease: Lease{ID: uuid.New()}, Row: testRow{}}, &Draft{Build: memo})
		if test.err != "" {
			if r, ok := refusal.As(err); !ok || r.Code != test.err {
				t.Errorf("%s: error %v, want %s", name, err, test.err)
			}
			if payer.reserved != 0 {
				t.Errorf("%s: %d lamports stay reserved, want none", name, payer.reserved)
			}
			continue
		}
		if err != nil || tx.compute.Tip.Lamports != test.want || (tx.lane == "") != (test.want == 0) || uint64(payer.reserved) != fee+test.want {
			t.Errorf("%s: tip %+v on lane %q, %d reserved (%v); want a tip of %d", name, tx.compute.Tip, tx.lane, payer.reserved, err, test.want)
		}
		if open := len(slices.DeleteFunc(caps.recorded, func(recorded bool) bool { return recorded })); open > 0 && test.want > 0 {
			t.Errorf("%s: %d allowances were given up, want none", name, open)
		}
	}
}

func TestPricesRiseWithExpiredAttempts(t *testing.T) {
	t.Parallel()
	p := &priceCache{rule: PriceRule{Floor: 10, Cap: 10_000}}
	const failed = 7777
	for name, test := range map[string]struct {
		price   uint64
		offered []uint64
		want    uint64
	}{
		"the first attempt pays the market's price":         {100, nil, 100},
		"the market rose above twice what was offered":      {5000, []uint64{2000}, 5000},
		"twice what was offered is above the market":        {2000, []uint64{1800}, 3600},
		"of several attempts the dearest counts":            {0, []uint64{1800, 3600, 1500}, 7200},
		"a price of zero rises, too":                        {0, []uint64{0}, 2000},
		"the cap bounds it":                                 {2000, []uint64{9000}, 10_000},
		"the cap bounds a price of the market":              {20_000, nil, 10_000},
		"an attempt that failed on the chain was not cheap": {100, []uint64{failed}, 100},
	} {
		j := &Job{}
		for _, price := range test.offered {
			tx, err := shieldpool.Versioned(solana.PublicKey{9}, shieldpool.Compute{Limit: 310_000, Price: price}, solana.Hash{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			a := Attempt{Raw: unsigned(t, tx)}
			if price == failed {
				a.Paid = 1
			}
			j.Live = append(j.Live, a)
		}
		if got := p.escalated(test.price, j.offeredInVain()); got != test.want {
			t.Errorf("%s: price %d, want %d", name, got, test.want)
		}
	}
	if got := (&priceCache{}).escalated(0, new(uint64)); got != 0 {
		t.Errorf("with a cap of 0 the price is %d, want 0", got)
	}
}

// unsigned returns the bytes of a transaction with an empty signature.
func unsigned(t *testing.T, tx *solana.Transaction) []byte {
	t.Helper()
	tx.Signatures = make([]solana.Signature, 1)
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A failure of the tip ends no submission; any other one counts as without a tip.
func TestAFailedTipEndsNothing(t *testing.T) {
	t.Parallel()
	m := &Manager{Options: Options{Class: func(_ Purpose, _ shieldpool.Format, err *shieldpool.TransactionError) shieldpool.Class {
		if err.Kind == "InsufficientFundsForRent" {
			return shieldpool.ClassRecipientRent
		}
		return shieldpool.ClassBug
	}}}
	tip := shieldpool.Tip{To: solana.PublicKey{9}, Lamports: 1}
	for _, format := range []shieldpool.Format{shieldpool.V0, shieldpool.V1} {
		ix := solana.NewInstruction(solana.MemoProgramID, solana.AccountMetaSlice{{PublicKey: solana.PublicKey{8}, IsWritable: true}}, nil)
		tx, err := shieldpool.Versioned(solana.PublicKey{1}, shieldpool.Compute{Format: format, Tip: tip}, solana.Hash{}, nil, ix)
		if err != nil {
			t.Fatal(err)
		}
		raw := unsigned(t, tx)
		last, index := len(tx.Message.Instructions)-1, func(key solana.PublicKey) int { return slices.Index(tx.Message.AccountKeys, key) }
		for name, test := range map[string]struct {
			err  shieldpool.TransactionError
			want shieldpool.Class
		}{
			"the tip's transfer fails":         {shieldpool.TransactionError{Kind: "InstructionError", Instruction: last, Detail: "Custom", Custom: 1}, shieldpool.ClassTransient},
			"another instruction fails":        {shieldpool.TransactionError{Kind: "InstructionError", Instruction: last - 1, Detail: "Custom", Custom: 1}, shieldpool.ClassBug},
			"the tip's account is too poor":    {shieldpool.TransactionError{Kind: "InsufficientFundsForRent", Account: index(tip.To)}, shieldpool.ClassTransient},
			"the recipient's is":               {shieldpool.TransactionError{Kind: "InsufficientFundsForRent", Account: index(solana.PublicKey{8})}, shieldpool.ClassRecipientRent},
			"the failure is of no instruction": {shieldpool.TransactionError{Kind: "AccountInUse"}, shieldpool.ClassBug},
		} {
			if got := m.classOf(&Attempt{Raw: raw, Tip: 1, Lane: "x"}, &test.err); got != test.want {
				t.Errorf("%s, %s: class %s, want %s", format, name, got, test.want)
			}
		}
	}
}
