package chain

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// skippedSlots is a slot minus its block height: 22 million on mainnet.
const skippedSlots = 10_000

// tells sets a host's slot, and how it computes the heights that it reports.
func (h *host) tells(slot uint64, blockhash, epochInfo func(slot, height uint64) uint64) {
	h.at(slot)
	h.set("getLatestBlockhash", says(fmt.Sprintf(`{"context":{"slot":%d},"value":{"blockhash":%q,"lastValidBlockHeight":%d}}`,
		slot, hashOf(slot), blockhash(slot, slot-skippedSlots)+150)))
	h.set("getEpochInfo", says(fmt.Sprintf(`{"absoluteSlot":%d,"blockHeight":%d}`, slot-32, epochInfo(slot-32, slot-32-skippedSlots))))
}

func truth(_, height uint64) uint64        { return height }
func slotAsHeight(slot, _ uint64) uint64   { return slot }
func tooHigh(_, height uint64) uint64      { return height + 5000 }
func tooLow(_, height uint64) uint64       { return height - 5000 }
func littleTooLow(_, h uint64) uint64      { return h - 9 }
func kindText(err error) string            { return strings.TrimSpace(onchain.KindOf(err)) }
func blockAt(slot uint64) (height uint64)  { return slot - skippedSlots }
func lastOf(slot uint64) (last uint64)     { return blockAt(slot) + 150 }
func noHigher(slot uint64) (height uint64) { return slot + 150 }

// TestALieDuringAnOutageExcludesNoHonestEndpoint: while the honest endpoint is down, the liar's
// blockhashes are too high; then the liar goes down and the honest one is used.
func TestALieDuringAnOutageExcludesNoHonestEndpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("liar", "b")
		e, _ := newEndpoints(t, n, of("liar", "b"), nil)
		n["liar"].tells(100_000, tooHigh, tooHigh)
		n["b"].fail(sick)
		if h, err := e.LatestBlockhash(t.Context()); err != nil || h.Slot != 100_000 {
			t.Fatalf("the blockhash is of slot %d, error %v, want slot 100000 of the only endpoint that answers", h.Slot, err)
		}
		time.Sleep(2 * time.Second)
		n["b"].heal()
		n["b"].tells(100_005, truth, truth)
		n["liar"].fail(sick)
		delete(n["liar"].said, "getLatestBlockhash")
		delete(n["liar"].said, "getEpochInfo")
		var h onchain.Blockhash
		var err error
		for range 10 { // its circuit breaker is probed soon
			if h, err = e.LatestBlockhash(t.Context()); err == nil && h.Slot == 100_005 {
				return
			}
			time.Sleep(time.Second)
		}
		t.Errorf("the blockhash is of slot %d, error %v, want the honest one's", h.Slot, err)
	})
}

// TestABlockhashesHeightNeedsTwoEndpoints: the endpoint that is asked first lies about
// block heights. The recorded last valid height is never below the true one, and is the
// false one only with a single endpoint.
func TestABlockhashesHeightNeedsTwoEndpoints(t *testing.T) {
	t.Parallel()
	const slot = 100_000
	tests := map[string]struct {
		hosts                []string
		blockhash, epochInfo func(slot, height uint64) uint64
		// agreed: the liar told the truth for a while; down: the others do not answer.
		agreed, down bool
		wantKind     string
		wantLast     func(slot uint64) uint64
		wantLiars    bool // its blockhash is used
	}{
		"a single endpoint is believed":                    {hosts: []string{"liar"}, blockhash: tooHigh, epochInfo: tooHigh, wantLast: func(s uint64) uint64 { return lastOf(s) + 5000 }, wantLiars: true},
		"a single endpoint that contradicts itself":        {hosts: []string{"liar"}, blockhash: slotAsHeight, epochInfo: truth, wantKind: onchain.KindContradiction},
		"one of two that contradicts itself":               {hosts: []string{"liar", "b"}, blockhash: slotAsHeight, epochInfo: truth, wantLast: lastOf},
		"one of two, too high":                             {hosts: []string{"liar", "b"}, blockhash: tooHigh, epochInfo: tooHigh, wantLast: noHigher, wantLiars: true},
		"one of two, too low":                              {hosts: []string{"liar", "b"}, blockhash: tooLow, epochInfo: tooLow, wantLast: noHigher, wantLiars: true},
		"one of two, too high, the other down":             {hosts: []string{"liar", "b"}, blockhash: tooHigh, epochInfo: tooHigh, down: true, wantLast: noHigher, wantLiars: true},
		"one of two, too low, the other down":              {hosts: []string{"liar", "b"}, blockhash: tooLow, epochInfo: tooLow, down: true, wantLast: noHigher, wantLiars: true},
		"one of two that agreed before, too high":          {hosts: []string{"liar", "b"}, blockhash: tooHigh, epochInfo: tooHigh, agreed: true, wantLast: lastOf},
		"one of two that agreed before, too low":           {hosts: []string{"liar", "b"}, blockhash: tooLow, epochInfo: tooLow, agreed: true, wantLast: lastOf},
		"one of two that agreed before, a little too low":  {hosts: []string{"liar", "b"}, blockhash: littleTooLow, epochInfo: truth, agreed: true, wantLast: lastOf, wantLiars: true},
		"one of two that agreed before, the other down":    {hosts: []string{"liar", "b"}, blockhash: tooHigh, epochInfo: tooHigh, agreed: true, down: true, wantKind: onchain.KindContradiction},
		"one of three, too high":                           {hosts: []string{"liar", "b", "c"}, blockhash: tooHigh, epochInfo: tooHigh, wantLast: lastOf},
		"one of three, too low":                            {hosts: []string{"liar", "b", "c"}, blockhash: tooLow, epochInfo: tooLow, wantLast: lastOf},
		"one of three that gives its slot as its height":   {hosts: []string{"liar", "b", "c"}, blockhash: slotAsHeight, epochInfo: slotAsHeight, wantLast: lastOf},
		"two honest endpoints":                             {hosts: []string{"liar", "b"}, blockhash: truth, epochInfo: truth, wantLast: lastOf, wantLiars: true},
		"two honest endpoints that agreed, the other down": {hosts: []string{"liar", "b"}, blockhash: truth, epochInfo: truth, agreed: true, down: true, wantLast: lastOf, wantLiars: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(test.hosts...)
				e, _ := newEndpoints(t, n, of(test.hosts...), nil)
				at := uint64(slot)
				all := func(blockhash, epochInfo func(uint64, uint64) uint64) {
					for i, name := range test.hosts {
						n[name].tells(at+uint64(i), truth, truth)
					}
					n["liar"].tells(at, blockhash, epochInfo)
				}
				if all(test.blockhash, test.epochInfo); test.agreed {
					all(truth, truth)
				}
				// Later calls depend on the results of the first.
				for round := range 4 {
					if round > 0 || test.agreed {
						if _, err := e.LatestBlockhash(t.Context()); err != nil && test.wantKind == "" {
							t.Fatal(err)
						}
						time.Sleep(2 * time.Second)
						at += 5
						all(test.blockhash, test.epochInfo)
					}
					if test.down {
						for _, name := range test.hosts[1:] {
							n[name].said = map[string]reply{}
							n[name].fail(sick)
						}
					}
					got, err := e.LatestBlockhash(t.Context())
					if kindText(err) != test.wantKind {
						t.Fatalf("error is %v, want kind %q", err, test.wantKind)
					}
					if err != nil {
						if !strings.Contains(err.Error(), "liar") || strings.Contains(err.Error(), "http") {
							t.Errorf("error is %v, want the endpoint's name in it", err)
						}
						continue
					}
					if liars := got.Slot == at; liars != test.wantLiars {
						t.Errorf("blockhash of slot %d is the liar's: %v, want %v", got.Slot, liars, test.wantLiars)
					}
					// It may be higher by the slots since the agreement: they may have been skipped.
					if want := test.wantLast(got.Slot); got.LastValidBlockHeight < want || got.LastValidBlockHeight > want+5 {
						t.Errorf("blockhash of slot %d is valid up to %d, want %d", got.Slot, got.LastValidBlockHeight, want)
					}
				}
			})
		})
	}
}

// TestExpiryNeedsTwoEndpoints: an attempt that no endpoint knows counts as expired
// once two endpoints agree, even if its recorded height is wrong, and never before it has
// expired.
func TestExpiryNeedsTwoEndpoints(t *testing.T) {
	t.Parallel()
	const slot, never, forEver = 100_000, 0, 1 << 40
	tests := map[string]struct {
		hosts     []string
		epochInfo func(slot, height uint64) uint64 // of the first
		down      bool                             // the others do not answer
		recorded  uint64
		// within is how soon it counts as expired, in slots after its blockhash: its life,
		// finality and one search and, for wrong heights, another search.
		within uint64
		// ahead is how far the recorded slot of its blockhash is too high.
		ahead uint64
	}{
		"a single endpoint":                        {[]string{"liar"}, truth, false, lastOf(slot), 190, 0},
		"a single endpoint, wrong recorded height": {[]string{"liar"}, truth, false, noHigher(slot), 270, 0},
		"two":                        {[]string{"liar", "b"}, truth, false, lastOf(slot), 190, 0},
		"two, wrong recorded height": {[]string{"liar", "b"}, truth, false, noHigher(slot), 270, 0},
		"one of two is too high":     {[]string{"liar", "b"}, tooHigh, false, lastOf(slot), 190, 0},
		"one of two is too high, wrong recorded height":           {[]string{"liar", "b"}, tooHigh, false, noHigher(slot), 270, 0},
		"one of two is too low, wrong recorded height":            {[]string{"liar", "b"}, tooLow, false, noHigher(slot), 270, 0},
		"one of two stands still":                                 {[]string{"liar", "b"}, func(uint64, uint64) uint64 { return blockAt(slot) }, false, lastOf(slot), never, 0},
		"one of three stands still":                               {[]string{"liar", "b", "c"}, func(uint64, uint64) uint64 { return blockAt(slot) }, false, lastOf(slot), 190, 0},
		"one of three is too high":                                {[]string{"liar", "b", "c"}, tooHigh, false, lastOf(slot), 190, 0},
		"one of three is too low, wrong recorded height":          {[]string{"liar", "b", "c"}, tooLow, false, noHigher(slot), 270, 0},
		"one of two, the other down":                              {[]string{"liar", "b"}, truth, true, lastOf(slot), 400, 0},
		"two, wrong recorded height and slot":                     {[]string{"liar", "b"}, truth, false, forEver, 450, 1_000_000},
		"a single endpoint, wrong recorded height and slot":       {[]string{"liar"}, truth, false, forEver, 450, 1_000_000},
		"one of two stands still, wrong recorded height and slot": {[]string{"liar", "b"}, func(uint64, uint64) uint64 { return blockAt(slot) }, false, forEver, never, 1_000_000},
		"one of two is too high, the other down":                  {[]string{"liar", "b"}, tooHigh, true, lastOf(slot), 400, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(test.hosts...)
				e, _ := newEndpoints(t, n, of(test.hosts...), nil)
				signed := time.Now()
				for at := uint64(slot + 10); ; at += 5 {
					for _, name := range test.hosts {
						n[name].tells(at, truth, truth)
					}
					n["liar"].tells(at, truth, test.epochInfo)
					if test.down {
						n["b"].set("getEpochInfo", sick)
					}
					look, err := e.Search(t.Context(), []solana.Signature{sigA})
					if err != nil && kindText(err) != onchain.KindContradiction {
						t.Fatal(err)
					}
					switch dead := err == nil && look.Fate(look.Statuses[0], slot+test.ahead, test.recorded, signed) == onchain.Expired; {
					case dead && blockAt(at-32) <= lastOf(slot) && !test.down:
						t.Fatalf("expired at height %d although it may land up to %d: %+v", blockAt(at-32), lastOf(slot), look)
					case dead && at-slot < 160 && test.down:
						t.Fatalf("expired %d slots after its blockhash on one endpoint's report alone: %+v", at-slot, look)
					case dead && test.within == never:
						t.Fatalf("expired on one endpoint's report alone: %+v", look)
					case dead:
						return
					case test.within == never && at > slot+600:
						return
					case test.within != never && at > slot+test.within:
						t.Fatalf("may still land %d slots after its blockhash: %+v", at-slot, look)
					}
					time.Sleep(2 * time.Second)
				}
			})
		})
	}
}
