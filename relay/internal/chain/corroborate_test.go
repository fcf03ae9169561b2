package chain

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// known makes all endpoints agree on where the chain is, with slots of 400 ms, and returns a
// function that lets time pass.
func known(t *testing.T, e *Endpoints, n network, all ...string) (pass func(time.Duration)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go e.Run(ctx)
	t.Cleanup(func() { cancel(); synctest.Wait() })
	pass = func(d time.Duration) {
		for range d / (400 * time.Millisecond) {
			time.Sleep(400 * time.Millisecond)
			for _, name := range all {
				n[name].move(1)
			}
		}
	}
	pass(12 * time.Second)
	return pass
}

// TestALiarAheadWinsNothing: an endpoint that claims to be ahead of the chain is
// not read, makes no other count as behind, and stops no blockhash.
func TestALiarAheadWinsNothing(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"liar", "b"}, {"liar", "b", "c"}} {
		for _, ahead := range []uint64{11, 100, 1 << 40} {
			t.Run(fmt.Sprintf("%d slots, one of %d", ahead, len(names)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork(names...)
					e, seen := newEndpoints(t, n, of(names...), nil)
					pass := known(t, e, n, names...)
					n["liar"].move(ahead)
					for range 10 {
						pass(2 * time.Second)
						if hash, err := e.LatestBlockhash(t.Context()); err != nil || ahead > 64 && hash.Slot != n["b"].standing() {
							t.Fatalf("blockhash is %+v with error %v, want one of slot %d", hash, err, n["b"].standing())
						}
						if _, slot, err := e.Balance(t.Context(), keyA, 0); err != nil || ahead > 64 && slot != n["b"].standing() {
							t.Fatalf("balance is of slot %d with error %v, want %d", slot, err, n["b"].standing())
						}
					}
					n["liar"].fail(sick)
					if _, err := e.LatestBlockhash(t.Context()); err != nil {
						t.Errorf("the honest blockhash is not taken: %v", err)
					}
					for _, s := range e.Status()[1:] {
						if s.Lag > 10 || s.Contradictions > 0 {
							t.Errorf("%s, which tells the truth, is %d slots behind and contradicted %d times", s.Name, s.Lag, s.Contradictions)
						}
					}
					if liar := e.Status()[0]; ahead > 64 && (liar.Contradictions == 0 || liar.ContradictedBy != "" || liar.LastError != onchain.KindServerError && liar.LastError != onchain.KindContradiction) {
						t.Errorf("no contradiction of the liar is counted: %+v", liar)
					}
					if said := strings.Count(seen.logged(), "slots or heights that no other endpoint confirms"); ahead > 64 && said != 1 {
						t.Errorf("it is logged %d times, want once:\n%s", said, seen.logged())
					}
				})
			})
		}
	}
}

// TestOneWildSlotStopsNothing: a slot in a single answer is no minContextSlot for others.
func TestOneWildSlotStopsNothing(t *testing.T) {
	t.Parallel()
	simulated := func(slot uint64) reply {
		return says(fmt.Sprintf(`{"context":{"slot":%d},"value":{"err":null,"unitsConsumed":7}}`, slot))
	}
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		t.Run(fmt.Sprintf("of %d", len(names)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(names...)
				e, _ := newEndpoints(t, n, of(names...), nil)
				pass := known(t, e, n, names...)
				n["a"].set("simulateTransaction", simulated(1<<50))
				if len(names) > 1 {
					n["b"].set("simulateTransaction", simulated(n["b"].standing()))
				}
				sim, err := e.Simulate(t.Context(), []byte{1}, true, 0)
				if len(names) == 1 {
					checkError(t, err, onchain.KindContradiction, 0, nil)
				} else if err != nil || sim.Slot != n["b"].standing() {
					t.Errorf("simulation is %+v with error %v, want that of b", sim, err)
				}
				pass(2 * time.Second)
				if hash, err := e.LatestBlockhash(t.Context()); err != nil || hash.Slot != n["a"].standing() {
					t.Errorf("blockhash is %+v with error %v, want that of slot %d", hash, err, n["a"].standing())
				}
				if i := slices.IndexFunc(e.Status(), func(s EndpointStatus) bool { return s.Breaker != outbound.Closed || s.Lag > 0 }); i >= 0 {
					t.Errorf("endpoint %d is not used: %+v", i, e.Status()[i])
				}
			})
		})
	}
}

// TestOutcomesNeedTwo: one endpoint's report about a signature counts once a second one
// reports the same, regardless of the liar's position among them.
func TestOutcomesNeedTwo(t *testing.T) {
	t.Parallel()
	status := func(slot int, confirmation, err string) string {
		return fmt.Sprintf(`{"confirmationStatus":%q,"err":%s,"slot":%d}`, confirmation, err, slot)
	}
	lie, fails := status(90, "finalized", "null"), status(90, "finalized", `"AccountInUse"`)
	tests := map[string]struct {
		say      []string // by endpoint; "" is down
		want     onchain.Status
		disputes bool
	}{
		"a single endpoint is believed":                {say: []string{lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized}},
		"one of two lies that it landed":               {say: []string{lie, "null"}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized, Unverified: true}, disputes: true},
		"one of two lies that it failed":               {say: []string{fails, lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized, Err: accountInUse, Unverified: true}, disputes: true},
		"the other of two is down":                     {say: []string{lie, ""}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized, Unverified: true}},
		"two say so":                                   {say: []string{lie, lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized}},
		"two say so of different finality":             {say: []string{lie, status(90, "confirmed", "null")}, want: onchain.Status{Slot: 90, Confirmation: onchain.Confirmed}},
		"two say so of different slots":                {say: []string{lie, status(70, "finalized", "null")}, want: onchain.Status{Slot: 70, Confirmation: onchain.Finalized}, disputes: true},
		"two of three say so, after one who does not":  {say: []string{lie, "null", lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized}, disputes: true},
		"two of three say so, and one is down":         {say: []string{lie, "", lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized}},
		"one of three lies that it failed":             {say: []string{fails, lie, lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized}, disputes: true},
		"one of three says for ever that it is new":    {say: []string{status(90, "confirmed", "null"), lie, lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized}},
		"one of three lies, and two know it is not so": {say: []string{lie, "null", "null"}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized, Unverified: true}, disputes: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				names := []string{"a", "b", "c"}[:len(test.say)]
				n := newNetwork(names...)
				for i, name := range names {
					n[name].at(130)
					n[name].set("getSignatureStatuses", says(fmt.Sprintf(`{"context":{"slot":130},"value":[%s]}`, test.say[i])))
					if test.say[i] == "" {
						n[name].set("getSignatureStatuses", sick)
					}
				}
				e, seen := newEndpoints(t, n, of(names...), nil)
				got, _, err := e.Statuses(t.Context(), []solana.Signature{sigA})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(&test.want, got[0]); diff != "" {
					t.Errorf("status differs (-want +got):\n%s", diff)
				}
				if n["a"].count("getSignatureStatuses") != 1 {
					t.Errorf("the first was asked %d times, want once", n["a"].count("getSignatureStatuses"))
				}
				if said := strings.Count(seen.logged(), "contradict each other"); (said > 0) != test.disputes || len(seen.contradicted) > 0 != test.disputes {
					t.Errorf("contradictions of %v are told, %d lines, want some: %v", seen.contradicted, said, test.disputes)
				}
			})
		})
	}
}

// accountInUse is the failure that tests use.
var accountInUse = &shieldpool.TransactionError{Kind: "AccountInUse"}

// TestALiarBetweenTwoHonestOnesHidesNoDeath: the look is read where two agree.
func TestALiarBetweenTwoHonestOnesHidesNoDeath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("liar", "b", "c")
		n["liar"].set("getSignatureStatuses", says(`{"context":{"slot":100},"value":[{"confirmationStatus":"finalized","err":null,"slot":60}]}`))
		n["liar"].set("getFirstAvailableBlock", says("1"))
		e, _ := newEndpoints(t, n, archives("liar", "b", "c"), nil)
		look, err := e.Search(t.Context(), []solana.Signature{sigA})
		if err != nil || look.Statuses[0] != nil || look.FirstAvailable != 3 {
			t.Errorf("look is %+v with error %v, want that of an honest endpoint, which does not know the signature", look, err)
		}
	})
}

// TestOneOfThreeDecidesNoFate: two endpoints that agree are believed, regardless of what the
// third reports about a signature and of which one is asked first.
func TestOneOfThreeDecidesNoFate(t *testing.T) {
	t.Parallel()
	status := func(confirmation, err string) string {
		return fmt.Sprintf(`{"confirmationStatus":%q,"err":%s,"slot":90}`, confirmation, err)
	}
	landed, none := status("finalized", "null"), "null"
	final, unsure := &onchain.Status{Slot: 90, Confirmation: onchain.Finalized}, &onchain.Status{Slot: 90, Confirmation: onchain.Finalized, Unverified: true}
	tests := map[string]struct {
		lie, truth string
		behind     bool // one honest endpoint is behind the other
		want       *onchain.Status
	}{
		"it hides a landing":                        {lie: none, truth: landed, want: final},
		"it calls a landing a failure":              {lie: status("finalized", `"AccountInUse"`), truth: landed, want: final},
		"it calls a landing new":                    {lie: status("processed", "null"), truth: landed, want: final},
		"it makes up a landing":                     {lie: landed, truth: none},
		"it makes up that something is under way":   {lie: status("processed", "null"), truth: none},
		"it hides a landing, and one is far behind": {lie: none, truth: landed, behind: true, want: unsure},
	}
	for name, test := range tests {
		for place := range 3 {
			t.Run(fmt.Sprint(name, ", asked as number ", place+1), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					names := []string{"a", "b", "c"}
					n := newNetwork(names...)
					say := []string{test.truth, test.truth, test.truth}
					say[place] = test.lie
					for i, name := range names {
						n[name].at(330)
						if test.behind && i == (place+1)%3 {
							n[name].at(250)
							say[i] = none
						}
						n[name].set("getSignatureStatuses", says(fmt.Sprintf(`{"context":{"slot":%d},"value":[%s]}`, n[name].slot, say[i])))
					}
					e, _ := newEndpoints(t, n, of(names...), nil)
					look, err := e.Search(t.Context(), []solana.Signature{sigA})
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(test.want, look.Statuses[0]); diff != "" {
						t.Errorf("status differs (-want +got):\n%s", diff)
					}
					if look.FinalizedHeight != 290 {
						t.Errorf("the horizon is %d, want 290, where two are", look.FinalizedHeight)
					}
				})
			})
		}
	}
}

// TestOneFrozenFinalityHoldsUpNoDeath: of three endpoints, the first one always reports the
// same finalized block.
func TestOneFrozenFinalityHoldsUpNoDeath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "b", "c")
		for _, h := range n {
			h.at(5000)
		}
		n["a"].set("getEpochInfo", says(`{"absoluteSlot":1000,"blockHeight":1000}`))
		e, _ := newEndpoints(t, n, archives("a", "b", "c"), nil)
		look, err := e.Search(t.Context(), []solana.Signature{sigA})
		if err != nil || look.FinalizedHeight != 4960 {
			t.Errorf("the horizon is %d, error %v, want 4960, where two are", look.FinalizedHeight, err)
		}
	})
}

// TestAnUncorroboratedSlotExpiresNothingEarly: two endpoints do not agree, and the one
// that is asked reports a slot that is too low, with a new blockhash.
func TestAnUncorroboratedSlotExpiresNothingEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("liar", "honest")
		n["liar"].at(4000)
		n["honest"].at(5000)
		e, _ := newEndpoints(t, n, of("liar", "honest"), nil)
		known(t, e, n, "liar", "honest")
		h, err := e.LatestBlockhash(t.Context())
		if least := n["honest"].standing() - 5; err != nil || h.Slot < least || h.LastValidBlockHeight < least+blockhashLifetime {
			t.Errorf("the blockhash is of slot %d and lives to %d, error %v, want %d or more, and its life", h.Slot, h.LastValidBlockHeight, err, least)
		}
	})
}

// TestNoSlotOverflows: a liar's slot is at the end of its range while nobody's height is known,
// and no transaction must seem dead for that.
func TestNoSlotOverflows(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"liar", "honest"}, {"honest", "liar"}} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(order...)
			n["honest"].at(5000)
			n["liar"].at(5000)
			n["liar"].set("getMultipleAccounts", says(`{"context":{"slot":18446744073709551615},"value":[null]}`))
			n["liar"].set("getEpochInfo", sick)
			n["liar"].set("getLatestBlockhash", sick)
			e, _ := newEndpoints(t, n, of(order...), nil)
			for range 3 {
				_, _, _ = e.Accounts(t.Context(), []solana.PublicKey{keyA}, onchain.Confirmed, 0) // the liar's slot is noted
				time.Sleep(time.Second)
			}
			h, err := e.LatestBlockhash(t.Context())
			if err != nil || h.Slot > math.MaxInt64 || h.LastValidBlockHeight < 5000+blockhashLifetime || h.LastValidBlockHeight > math.MaxInt64 {
				t.Errorf("the blockhash is of slot %d and lives to %d, error %v, asking %v first", h.Slot, h.LastValidBlockHeight, err, order[0])
			}
		})
	}
}

// TestAFailedSimulationNeedsTwo: a single endpoint can neither fail a transaction for good nor
// stop the signing.
func TestAFailedSimulationNeedsTwo(t *testing.T) {
	t.Parallel()
	simulated := func(err string) reply {
		return says(fmt.Sprintf(`{"context":{"slot":100},"value":{"err":%s,"unitsConsumed":7}}`, err))
	}
	fails, otherwise, runs := simulated(`"AccountInUse"`), simulated(`"ProgramAccountNotFound"`), simulated("null")
	tests := map[string]struct {
		say            []reply
		wantErr        bool
		wantUnverified bool
	}{
		"a single endpoint is believed":           {say: []reply{fails}, wantErr: true},
		"success needs no second word":            {say: []reply{runs, sick}},
		"one of two lies that it fails":           {say: []reply{fails, runs}},
		"two fail it alike":                       {say: []reply{fails, fails}, wantErr: true},
		"two fail it otherwise":                   {say: []reply{fails, otherwise}, wantErr: true, wantUnverified: true},
		"the other is down":                       {say: []reply{fails, sick}, wantErr: true, wantUnverified: true},
		"two of three fail it alike":              {say: []reply{fails, otherwise, fails}, wantErr: true},
		"two others fail it alike":                {say: []reply{fails, otherwise, otherwise}, wantErr: true},
		"one of three runs it":                    {say: []reply{fails, otherwise, runs}},
		"one of three is down, and two are alike": {say: []reply{fails, sick, fails}, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				names := []string{"a", "b", "c"}[:len(test.say)]
				n := newNetwork(names...)
				for i, name := range names {
					n[name].set("simulateTransaction", test.say[i])
				}
				e, _ := newEndpoints(t, n, of(names...), nil)
				got, err := e.Simulate(t.Context(), []byte{1}, true, 0)
				if err != nil || (got.Err != nil) != test.wantErr || got.Unverified != test.wantUnverified {
					t.Errorf("simulation is %+v with error %v, want one that fails: %v, not verified: %v", got, err, test.wantErr, test.wantUnverified)
				}
			})
		})
	}
}

// TestALeadOfOneRaisesNoFloor: the slot of an answer becomes the minContextSlot of the next
// call, so that no honest endpoint could answer.
func TestALeadOfOneRaisesNoFloor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("liar", "honest")
		n["honest"].at(1000)
		n["liar"].at(1000)
		e, _ := newEndpoints(t, n, of("liar", "honest"), nil)
		known(t, e, n, "liar", "honest")
		pool := testPool(t)
		reader, err := NewPool(PoolOptions{Accounts: e, Pool: pool, Now: time.Now, Corroborated: e.Corroborated})
		if err != nil {
			t.Fatal(err)
		}
		floor := n["honest"].standing() - 5
		for ahead, wantMore := range map[uint64]bool{3: true, 50: false} {
			slot := n["honest"].standing() + ahead
			n["liar"].set("simulateTransaction", says(fmt.Sprintf(`{"context":{"slot":%d},"value":{"err":null,"unitsConsumed":7}}`, slot)))
			n["liar"].set("getMultipleAccounts", says(fmt.Sprintf(`{"context":{"slot":%d},"value":[null]}`, slot)))
			simulated, err := e.Simulate(t.Context(), raw, true, floor)
			if err != nil || (simulated.Slot == slot) != wantMore || simulated.Slot < floor {
				t.Errorf("%d ahead: the simulation is of slot %d, error %v", ahead, simulated.Slot, err)
			}
			seen, err := reader.Inspect(t.Context(), &shieldpool.PublicInputs{Nullifiers: [2][32]byte{{31: 1}}}, solana.PublicKey{}, floor)
			if err != nil || (seen.Slot == slot) != wantMore || seen.Slot < floor {
				t.Errorf("%d ahead: the notes are of slot %d, error %v", ahead, seen.Slot, err)
			}
		}
	})
}

// TestStatusesOfAnEndpointWithAFalseSlotCount: one of two endpoints claims to be far ahead. Its
// reports about a signature and a simulation count, and its slot does not.
func TestStatusesOfAnEndpointWithAFalseSlotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("honest", "liar")
		n["honest"].at(200)
		n["liar"].at(200)
		e, _ := newEndpoints(t, n, of("honest", "liar"), nil)
		known(t, e, n, "honest", "liar")
		if !e.Corroborated(n["honest"].standing()) {
			t.Fatal("the two do not agree")
		}
		const ahead = 1_000_000
		n["liar"].at(ahead)
		status := func(slot int) reply {
			return says(fmt.Sprintf(`{"context":{"slot":%d},"value":[{"confirmationStatus":"finalized","err":null,"slot":72}]}`, slot))
		}
		fails := func(slot int) reply {
			return says(fmt.Sprintf(`{"context":{"slot":%d},"value":{"err":"AccountInUse","logs":[],"unitsConsumed":1}}`, slot))
		}
		n["honest"].set("getSignatureStatuses", status(200))
		n["liar"].set("getSignatureStatuses", status(ahead))
		n["honest"].set("simulateTransaction", fails(200))
		n["liar"].set("simulateTransaction", fails(ahead))
		want := []*onchain.Status{{Slot: 72, Confirmation: onchain.Finalized}}
		look, err := e.Search(t.Context(), []solana.Signature{sigA})
		if diff := cmp.Diff(want, look.Statuses); err != nil || diff != "" {
			t.Errorf("error is %v, and a search differs (-want +got):\n%s", err, diff)
		}
		if look.FinalizedSlot > 200 || look.FinalizedHeight != 0 {
			t.Errorf("the horizon is %+v, want one that nobody bears out", look)
		}
		statuses, _, err := e.Statuses(t.Context(), []solana.Signature{sigA})
		if diff := cmp.Diff(want, statuses); err != nil || diff != "" {
			t.Errorf("error is %v, and statuses differ (-want +got):\n%s", err, diff)
		}
		if sim, err := e.Simulate(t.Context(), []byte{1}, true, 0); err != nil || sim.Err == nil || sim.Unverified || sim.Slot != 200 {
			t.Errorf("the simulation is %+v with error %v, want one that two fail, of slot 200", sim, err)
		}
	})
}
