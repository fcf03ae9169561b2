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

// setHeights sets a host's slot, and how it computes the heights that it reports.
func (h *host) setHeights(slot uint64, blockhash, epochInfo func(slot, height uint64) uint64) {
	h.setSlot(slot)
	h.set("getLatestBlockhash", resultReply(fmt.Sprintf(`{"context":{"slot":%d},"value":{"blockhash":%q,"lastValidBlockHeight":%d}}`,
		slot, hashOf(slot), blockhash(slot, slot-skippedSlots)+150)))
	h.set("getEpochInfo", resultReply(fmt.Sprintf(`{"absoluteSlot":%d,"blockHeight":%d}`, slot-32, epochInfo(slot-32, slot-32-skippedSlots))))
}

func truth(_, height uint64) uint64               { return height }
func slotAsHeight(slot, _ uint64) uint64          { return slot }
func tooHigh(_, height uint64) uint64             { return height + 5000 }
func tooLow(_, height uint64) uint64              { return height - 5000 }
func littleTooLow(_, height uint64) uint64        { return height - 9 }
func kindOf(err error) string                     { return strings.TrimSpace(onchain.KindOf(err)) }
func heightAt(slot uint64) (height uint64)        { return slot - skippedSlots }
func trueLastValid(slot uint64) (last uint64)     { return heightAt(slot) + 150 }
func slotAsLastValid(slot uint64) (height uint64) { return slot + 150 }

// TestHonestEndpointIsUsedAfterWrongHeightsInItsOutage: while the honest endpoint is down, the liar
// reports heights that are too high. Then the liar goes down, and the honest endpoint is used.
func TestHonestEndpointIsUsedAfterWrongHeightsInItsOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("liar", "b")
		e, _ := newEndpoints(t, n, endpointsNamed("liar", "b"), nil)
		n["liar"].setHeights(100_000, tooHigh, tooHigh)
		n["b"].fail(serverError)
		if h, err := e.LatestBlockhash(t.Context()); err != nil || h.Slot != 100_000 {
			t.Fatalf("the blockhash is of slot %d, error %v, want slot 100000 of the only endpoint that answers", h.Slot, err)
		}
		time.Sleep(2 * time.Second)
		n["b"].heal()
		n["b"].setHeights(100_005, truth, truth)
		n["liar"].fail(serverError)
		delete(n["liar"].answers, "getLatestBlockhash")
		delete(n["liar"].answers, "getEpochInfo")
		var h onchain.Blockhash
		var err error
		for range 10 { // until the honest endpoint's breaker is probed
			if h, err = e.LatestBlockhash(t.Context()); err == nil && h.Slot == 100_005 {
				return
			}
			time.Sleep(time.Second)
		}
		t.Errorf("the blockhash is of slot %d, error %v, want slot 100005 of the honest endpoint", h.Slot, err)
	})
}

// TestLastValidHeightNeedsTwoEndpoints: the endpoint that is asked first lies about
// block heights. The last valid height is never below the true one, and is wrong only with
// a single endpoint.
func TestLastValidHeightNeedsTwoEndpoints(t *testing.T) {
	t.Parallel()
	const slot = 100_000
	tests := map[string]struct {
		hosts                []string
		blockhash, epochInfo func(slot, height uint64) uint64
		// agreed: the liar told the truth at first. down: the others do not answer.
		agreed, down       bool
		wantKind           string
		wantLast           func(slot uint64) uint64
		wantLiarsBlockhash bool // the liar's blockhash is used
	}{
		"a single endpoint is believed":                    {hosts: []string{"liar"}, blockhash: tooHigh, epochInfo: tooHigh, wantLast: func(s uint64) uint64 { return trueLastValid(s) + 5000 }, wantLiarsBlockhash: true},
		"a single endpoint that contradicts itself":        {hosts: []string{"liar"}, blockhash: slotAsHeight, epochInfo: truth, wantKind: onchain.KindContradiction},
		"one of two that contradicts itself":               {hosts: []string{"liar", "b"}, blockhash: slotAsHeight, epochInfo: truth, wantLast: trueLastValid},
		"one of two, too high":                             {hosts: []string{"liar", "b"}, blockhash: tooHigh, epochInfo: tooHigh, wantLast: slotAsLastValid, wantLiarsBlockhash: true},
		"one of two, too low":                              {hosts: []string{"liar", "b"}, blockhash: tooLow, epochInfo: tooLow, wantLast: slotAsLastValid, wantLiarsBlockhash: true},
		"one of two, too high, the other down":             {hosts: []string{"liar", "b"}, blockhash: tooHigh, epochInfo: tooHigh, down: true, wantLast: slotAsLastValid, wantLiarsBlockhash: true},
		"one of two, too low, the other down":              {hosts: []string{"liar", "b"}, blockhash: tooLow, epochInfo: tooLow, down: true, wantLast: slotAsLastValid, wantLiarsBlockhash: true},
		"one of two that agreed before, too high":          {hosts: []string{"liar", "b"}, blockhash: tooHigh, epochInfo: tooHigh, agreed: true, wantLast: trueLastValid},
		"one of two that agreed before, too low":           {hosts: []string{"liar", "b"}, blockhash: tooLow, epochInfo: tooLow, agreed: true, wantLast: trueLastValid},
		"one of two that agreed before, a little too low":  {hosts: []string{"liar", "b"}, blockhash: littleTooLow, epochInfo: truth, agreed: true, wantLast: trueLastValid, wantLiarsBlockhash: true},
		"one of two that agreed before, the other down":    {hosts: []string{"liar", "b"}, blockhash: tooHigh, epochInfo: tooHigh, agreed: true, down: true, wantKind: onchain.KindContradiction},
		"one of three, too high":                           {hosts: []string{"liar", "b", "c"}, blockhash: tooHigh, epochInfo: tooHigh, wantLast: trueLastValid},
		"one of three, too low":                            {hosts: []string{"liar", "b", "c"}, blockhash: tooLow, epochInfo: tooLow, wantLast: trueLastValid},
		"one of three that gives its slot as its height":   {hosts: []string{"liar", "b", "c"}, blockhash: slotAsHeight, epochInfo: slotAsHeight, wantLast: trueLastValid},
		"two honest endpoints":                             {hosts: []string{"liar", "b"}, blockhash: truth, epochInfo: truth, wantLast: trueLastValid, wantLiarsBlockhash: true},
		"two honest endpoints that agreed, the other down": {hosts: []string{"liar", "b"}, blockhash: truth, epochInfo: truth, agreed: true, down: true, wantLast: trueLastValid, wantLiarsBlockhash: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(test.hosts...)
				e, _ := newEndpoints(t, n, endpointsNamed(test.hosts...), nil)
				at := uint64(slot)
				setAll := func(blockhash, epochInfo func(uint64, uint64) uint64) {
					for i, name := range test.hosts {
						n[name].setHeights(at+uint64(i), truth, truth)
					}
					n["liar"].setHeights(at, blockhash, epochInfo)
				}
				if setAll(test.blockhash, test.epochInfo); test.agreed {
					setAll(truth, truth)
				}
				// Later calls depend on the results of the first.
				for round := range 4 {
					if round > 0 || test.agreed {
						if _, err := e.LatestBlockhash(t.Context()); err != nil && test.wantKind == "" {
							t.Fatal(err)
						}
						time.Sleep(2 * time.Second)
						at += 5
						setAll(test.blockhash, test.epochInfo)
					}
					if test.down {
						for _, name := range test.hosts[1:] {
							n[name].answers = map[string]reply{}
							n[name].fail(serverError)
						}
					}
					got, err := e.LatestBlockhash(t.Context())
					if kindOf(err) != test.wantKind {
						t.Fatalf("error is %v, want kind %q", err, test.wantKind)
					}
					if err != nil {
						if !strings.Contains(err.Error(), "liar") || strings.Contains(err.Error(), "http") {
							t.Errorf("error is %v, want the endpoint's name in it", err)
						}
						continue
					}
					if isLiars := got.Slot == at; isLiars != test.wantLiarsBlockhash {
						t.Errorf("blockhash of slot %d is the liar's: %v, want %v", got.Slot, isLiars, test.wantLiarsBlockhash)
					}
					// The height may be higher by the number of slots since the agreement, because these
					// slots may have been skipped.
					if want := test.wantLast(got.Slot); got.LastValidBlockHeight < want || got.LastValidBlockHeight > want+5 {
						t.Errorf("blockhash of slot %d is valid up to %d, want %d to %d", got.Slot, got.LastValidBlockHeight, want, want+5)
					}
				}
			})
		})
	}
}

// TestExpiryNeedsTwoEndpoints: an attempt that no endpoint knows counts as expired once two
// endpoints agree, even if its recorded height is wrong, and never too early.
func TestExpiryNeedsTwoEndpoints(t *testing.T) {
	t.Parallel()
	const slot, never, forEver = 100_000, 0, 1 << 40
	tests := map[string]struct {
		hosts     []string
		epochInfo func(slot, height uint64) uint64 // of the first endpoint
		down      bool                             // the others do not answer
		recorded  uint64
		// within is the number of slots after its blockhash within which the attempt counts as
		// expired: the blockhash's lifetime, finality and one search, or two for wrong heights.
		within uint64
		// ahead is by how much the recorded slot of its blockhash is too high.
		ahead uint64
	}{
		"a single endpoint":                        {[]string{"liar"}, truth, false, trueLastValid(slot), 190, 0},
		"a single endpoint, wrong recorded height": {[]string{"liar"}, truth, false, slotAsLastValid(slot), 270, 0},
		"two":                        {[]string{"liar", "b"}, truth, false, trueLastValid(slot), 190, 0},
		"two, wrong recorded height": {[]string{"liar", "b"}, truth, false, slotAsLastValid(slot), 270, 0},
		"one of two is too high":     {[]string{"liar", "b"}, tooHigh, false, trueLastValid(slot), 190, 0},
		"one of two is too high, wrong recorded height":        {[]string{"liar", "b"}, tooHigh, false, slotAsLastValid(slot), 270, 0},
		"one of two is too low, wrong recorded height":         {[]string{"liar", "b"}, tooLow, false, slotAsLastValid(slot), 270, 0},
		"one of two is frozen":                                 {[]string{"liar", "b"}, func(uint64, uint64) uint64 { return heightAt(slot) }, false, trueLastValid(slot), never, 0},
		"one of three is frozen":                               {[]string{"liar", "b", "c"}, func(uint64, uint64) uint64 { return heightAt(slot) }, false, trueLastValid(slot), 190, 0},
		"one of three is too high":                             {[]string{"liar", "b", "c"}, tooHigh, false, trueLastValid(slot), 190, 0},
		"one of three is too low, wrong recorded height":       {[]string{"liar", "b", "c"}, tooLow, false, slotAsLastValid(slot), 270, 0},
		"one of two, the other down":                           {[]string{"liar", "b"}, truth, true, trueLastValid(slot), 400, 0},
		"two, wrong recorded height and slot":                  {[]string{"liar", "b"}, truth, false, forEver, 450, 1_000_000},
		"a single endpoint, wrong recorded height and slot":    {[]string{"liar"}, truth, false, forEver, 450, 1_000_000},
		"one of two is frozen, wrong recorded height and slot": {[]string{"liar", "b"}, func(uint64, uint64) uint64 { return heightAt(slot) }, false, forEver, never, 1_000_000},
		"one of two is too high, the other down":               {[]string{"liar", "b"}, tooHigh, true, trueLastValid(slot), 400, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(test.hosts...)
				e, _ := newEndpoints(t, n, endpointsNamed(test.hosts...), nil)
				signed := time.Now()
				for at := uint64(slot + 10); ; at += 5 {
					for _, name := range test.hosts {
						n[name].setHeights(at, truth, truth)
					}
					n["liar"].setHeights(at, truth, test.epochInfo)
					if test.down {
						n["b"].set("getEpochInfo", serverError)
					}
					found, err := e.Search(t.Context(), []solana.Signature{sigA})
					if err != nil && kindOf(err) != onchain.KindContradiction {
						t.Fatal(err)
					}
					switch expired := err == nil && found.Fate(found.Statuses[0], slot+test.ahead, test.recorded, signed) == onchain.Expired; {
					case expired && heightAt(at-32) <= trueLastValid(slot) && !test.down:
						t.Fatalf("expired at height %d although it may land up to %d: %+v", heightAt(at-32), trueLastValid(slot), found)
					case expired && at-slot < 160 && test.down:
						t.Fatalf("expired %d slots after its blockhash on one endpoint's report alone: %+v", at-slot, found)
					case expired && test.within == never:
						t.Fatalf("expired on one endpoint's report alone: %+v", found)
					case expired:
						return
					case test.within == never && at > slot+600:
						return
					case test.within != never && at > slot+test.within:
						t.Fatalf("may still land %d slots after its blockhash: %+v", at-slot, found)
					}
					time.Sleep(2 * time.Second)
				}
			})
		})
	}
}
