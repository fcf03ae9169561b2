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

// startPolling starts Run, lets all endpoints agree on the chain's slot, and returns a function that
// lets time pass with a slot every 400 ms.
func startPolling(t *testing.T, e *Endpoints, n network, all ...string) (advanceTime func(time.Duration)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go e.Run(ctx)
	t.Cleanup(func() { cancel(); synctest.Wait() })
	advanceTime = func(d time.Duration) {
		for range d / (400 * time.Millisecond) {
			time.Sleep(400 * time.Millisecond)
			for _, name := range all {
				n[name].advance(1)
			}
		}
	}
	advanceTime(12 * time.Second)
	return advanceTime
}

// TestEndpointAheadOfTheChainIsNotUsed: an endpoint that claims to be ahead of the chain is not used. The
// others do not count as behind because of it, and their blockhashes are used.
func TestEndpointAheadOfTheChainIsNotUsed(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"liar", "b"}, {"liar", "b", "c"}} {
		for _, ahead := range []uint64{11, 100, 1 << 40} {
			t.Run(fmt.Sprintf("%d slots ahead, one of %d endpoints", ahead, len(names)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork(names...)
					e, seen := newEndpoints(t, n, endpointsNamed(names...), nil)
					advanceTime := startPolling(t, e, n, names...)
					n["liar"].advance(ahead)
					for range 10 {
						advanceTime(2 * time.Second)
						if hash, err := e.LatestBlockhash(t.Context()); err != nil || ahead > 64 && hash.Slot != n["b"].currentSlot() {
							t.Fatalf("blockhash is %+v with error %v, want one of slot %d", hash, err, n["b"].currentSlot())
						}
						if _, slot, err := e.Balance(t.Context(), keyA, 0); err != nil || ahead > 64 && slot != n["b"].currentSlot() {
							t.Fatalf("balance is of slot %d with error %v, want %d", slot, err, n["b"].currentSlot())
						}
					}
					n["liar"].fail(serverError)
					if _, err := e.LatestBlockhash(t.Context()); err != nil {
						t.Errorf("the honest endpoint's blockhash is refused: %v", err)
					}
					for _, s := range e.Status()[1:] {
						if s.Lag > 10 || s.Contradictions > 0 {
							t.Errorf("honest endpoint %s is %d slots behind and contradicted %d times, want at most 10 and 0", s.Name, s.Lag, s.Contradictions)
						}
					}
					if liar := e.Status()[0]; ahead > 64 && (liar.Contradictions == 0 || liar.ContradictedBy != "" || liar.LastError != onchain.KindServerError && liar.LastError != onchain.KindContradiction) {
						t.Errorf("no contradiction of the liar is counted: %+v", liar)
					}
					if lines := strings.Count(seen.logged(), "slots or heights that no other endpoint confirms"); ahead > 64 && lines != 1 {
						t.Errorf("the contradiction is logged %d times, want once:\n%s", lines, seen.logged())
					}
				})
			})
		}
	}
}

// TestImpossibleSlotInOneAnswerIsIgnored: an impossible slot in one answer does not stop other reads.
func TestImpossibleSlotInOneAnswerIsIgnored(t *testing.T) {
	t.Parallel()
	simulated := func(slot uint64) reply {
		return resultReply(fmt.Sprintf(`{"context":{"slot":%d},"value":{"err":null,"unitsConsumed":7}}`, slot))
	}
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		t.Run(fmt.Sprintf("%d endpoints", len(names)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(names...)
				e, _ := newEndpoints(t, n, endpointsNamed(names...), nil)
				advanceTime := startPolling(t, e, n, names...)
				n["a"].set("simulateTransaction", simulated(1<<50))
				if len(names) > 1 {
					n["b"].set("simulateTransaction", simulated(n["b"].currentSlot()))
				}
				sim, err := e.Simulate(t.Context(), []byte{1}, true, 0)
				if len(names) == 1 {
					checkError(t, err, onchain.KindContradiction, 0, nil)
				} else if err != nil || sim.Slot != n["b"].currentSlot() {
					t.Errorf("simulation is %+v with error %v, want that of b", sim, err)
				}
				advanceTime(2 * time.Second)
				if hash, err := e.LatestBlockhash(t.Context()); err != nil || hash.Slot != n["a"].currentSlot() {
					t.Errorf("blockhash is %+v with error %v, want that of slot %d", hash, err, n["a"].currentSlot())
				}
				if i := slices.IndexFunc(e.Status(), func(s EndpointStatus) bool { return s.Breaker != outbound.Closed || s.Lag > 0 }); i >= 0 {
					t.Errorf("endpoint %d is not used: %+v", i, e.Status()[i])
				}
			})
		})
	}
}

// TestDecisiveStatusNeedsTwoEndpoints: a decisive status counts once a second endpoint reports the same.
func TestDecisiveStatusNeedsTwoEndpoints(t *testing.T) {
	t.Parallel()
	status := func(slot int, confirmation, err string) string {
		return fmt.Sprintf(`{"confirmationStatus":%q,"err":%s,"slot":%d}`, confirmation, err, slot)
	}
	lie, fails := status(90, "finalized", "null"), status(90, "finalized", `"AccountInUse"`)
	tests := map[string]struct {
		answers  []string // by endpoint; "" means that it is down
		want     onchain.Status
		disputes bool
	}{
		"a single endpoint is believed":                    {answers: []string{lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized}},
		"one of two lies that it landed":                   {answers: []string{lie, "null"}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized, Unverified: true}, disputes: true},
		"one of two lies that it failed":                   {answers: []string{fails, lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized, Err: accountInUse, Unverified: true}, disputes: true},
		"the other of two is down":                         {answers: []string{lie, ""}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized, Unverified: true}},
		"two report it":                                    {answers: []string{lie, lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized}},
		"two report it with different confirmations":       {answers: []string{lie, status(90, "confirmed", "null")}, want: onchain.Status{Slot: 90, Confirmation: onchain.Confirmed}},
		"two report it in different slots":                 {answers: []string{lie, status(70, "finalized", "null")}, want: onchain.Status{Slot: 70, Confirmation: onchain.Finalized}, disputes: true},
		"first and third report it, the second does not":   {answers: []string{lie, "null", lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized}, disputes: true},
		"two of three report it, one is down":              {answers: []string{lie, "", lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized}},
		"one of three lies that it failed":                 {answers: []string{fails, lie, lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized}, disputes: true},
		"one of three reports it as confirmed only":        {answers: []string{status(90, "confirmed", "null"), lie, lie}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized}},
		"one of three lies, two do not know the signature": {answers: []string{lie, "null", "null"}, want: onchain.Status{Slot: 90, Confirmation: onchain.Finalized, Unverified: true}, disputes: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				names := []string{"a", "b", "c"}[:len(test.answers)]
				n := newNetwork(names...)
				for i, name := range names {
					n[name].setSlot(130)
					n[name].set("getSignatureStatuses", resultReply(fmt.Sprintf(`{"context":{"slot":130},"value":[%s]}`, test.answers[i])))
					if test.answers[i] == "" {
						n[name].set("getSignatureStatuses", serverError)
					}
				}
				e, seen := newEndpoints(t, n, endpointsNamed(names...), nil)
				got, _, err := e.Statuses(t.Context(), []solana.Signature{sigA})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(&test.want, got[0]); diff != "" {
					t.Errorf("status differs (-want +got):\n%s", diff)
				}
				if n["a"].count("getSignatureStatuses") != 1 {
					t.Errorf("the first endpoint was asked %d times, want once", n["a"].count("getSignatureStatuses"))
				}
				if lines := strings.Count(seen.logged(), "contradict each other"); (lines > 0) != test.disputes || len(seen.contradicted) > 0 != test.disputes {
					t.Errorf("contradictions of %v are observed and %d logged, want contradictions: %v", seen.contradicted, lines, test.disputes)
				}
			})
		})
	}
}

// accountInUse is the transaction error that tests use.
var accountInUse = &shieldpool.TransactionError{Kind: "AccountInUse"}

// TestSearchIgnoresOutvotedEndpoint: the search result is that of the endpoints that
// agree.
func TestSearchIgnoresOutvotedEndpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("liar", "b", "c")
		n["liar"].set("getSignatureStatuses", resultReply(`{"context":{"slot":100},"value":[{"confirmationStatus":"finalized","err":null,"slot":60}]}`))
		n["liar"].set("getFirstAvailableBlock", resultReply("1"))
		e, _ := newEndpoints(t, n, archiveFirst("liar", "b", "c"), nil)
		found, err := e.Search(t.Context(), []solana.Signature{sigA})
		if err != nil || found.Statuses[0] != nil || found.FirstAvailable != 3 {
			t.Errorf("search returned %+v with error %v, want the result of an honest endpoint, which does not know the signature", found, err)
		}
	})
}

// TestSearchFollowsTwoOfThreeEndpoints: two endpoints that agree are believed, whatever the third one
// reports, and in whichever order they are asked.
func TestSearchFollowsTwoOfThreeEndpoints(t *testing.T) {
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
		"the liar does not report a landing":                                  {lie: none, truth: landed, want: final},
		"the liar reports a landing as failed":                                {lie: status("finalized", `"AccountInUse"`), truth: landed, want: final},
		"the liar reports a landing as processed":                             {lie: status("processed", "null"), truth: landed, want: final},
		"the liar invents a landing":                                          {lie: landed, truth: none},
		"the liar invents a processed transaction":                            {lie: status("processed", "null"), truth: none},
		"the liar does not report a landing, and an honest one is far behind": {lie: none, truth: landed, behind: true, want: unsure},
	}
	for name, test := range tests {
		for position := range 3 {
			t.Run(fmt.Sprint(name, ", the liar is asked as number ", position+1), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					names := []string{"a", "b", "c"}
					n := newNetwork(names...)
					answers := []string{test.truth, test.truth, test.truth}
					answers[position] = test.lie
					for i, name := range names {
						n[name].setSlot(330)
						if test.behind && i == (position+1)%3 {
							n[name].setSlot(250)
							answers[i] = none
						}
						n[name].set("getSignatureStatuses", resultReply(fmt.Sprintf(`{"context":{"slot":%d},"value":[%s]}`, n[name].slot, answers[i])))
					}
					e, _ := newEndpoints(t, n, endpointsNamed(names...), nil)
					found, err := e.Search(t.Context(), []solana.Signature{sigA})
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(test.want, found.Statuses[0]); diff != "" {
						t.Errorf("status differs (-want +got):\n%s", diff)
					}
					if found.FinalizedHeight != 290 {
						t.Errorf("the finalized height is %d, want 290, which two endpoints report", found.FinalizedHeight)
					}
				})
			})
		}
	}
}

// TestFrozenFinalizedBlockIsOutvoted: of three endpoints, the first one always reports the
// same finalized block.
func TestFrozenFinalizedBlockIsOutvoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "b", "c")
		for _, h := range n {
			h.setSlot(5000)
		}
		n["a"].set("getEpochInfo", resultReply(`{"absoluteSlot":1000,"blockHeight":1000}`))
		e, _ := newEndpoints(t, n, archiveFirst("a", "b", "c"), nil)
		found, err := e.Search(t.Context(), []solana.Signature{sigA})
		if err != nil || found.FinalizedHeight != 4960 {
			t.Errorf("the finalized height is %d, error %v, want 4960, which two endpoints report", found.FinalizedHeight, err)
		}
	})
}

// TestUncorroboratedSlotDoesNotShortenBlockhashLifetime: two endpoints do not agree. The one that is asked
// returns a new blockhash with a slot that is too low.
func TestUncorroboratedSlotDoesNotShortenBlockhashLifetime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("liar", "honest")
		n["liar"].setSlot(4000)
		n["honest"].setSlot(5000)
		e, _ := newEndpoints(t, n, endpointsNamed("liar", "honest"), nil)
		startPolling(t, e, n, "liar", "honest")
		h, err := e.LatestBlockhash(t.Context())
		if least := n["honest"].currentSlot() - 5; err != nil || h.Slot < least || h.LastValidBlockHeight < least+blockhashLifetime {
			t.Errorf("the blockhash is of slot %d and valid up to %d, error %v; want slot %d or later, and valid for %d more", h.Slot, h.LastValidBlockHeight, err, least, blockhashLifetime)
		}
	})
}

// TestGreatestSlotDoesNotOverflow: a liar reports the greatest slot of all before any height is known. No
// transaction must seem expired because of it.
func TestGreatestSlotDoesNotOverflow(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"liar", "honest"}, {"honest", "liar"}} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(order...)
			n["honest"].setSlot(5000)
			n["liar"].setSlot(5000)
			n["liar"].set("getMultipleAccounts", resultReply(`{"context":{"slot":18446744073709551615},"value":[null]}`))
			n["liar"].set("getEpochInfo", serverError)
			n["liar"].set("getLatestBlockhash", serverError)
			e, _ := newEndpoints(t, n, endpointsNamed(order...), nil)
			for range 3 {
				_, _, _ = e.Accounts(t.Context(), []solana.PublicKey{keyA}, onchain.Confirmed, 0) // the liar's slot is recorded
				time.Sleep(time.Second)
			}
			h, err := e.LatestBlockhash(t.Context())
			if err != nil || h.Slot > math.MaxInt64 || h.LastValidBlockHeight < 5000+blockhashLifetime || h.LastValidBlockHeight > math.MaxInt64 {
				t.Errorf("with %[4]v asked first, the blockhash is of slot %[1]d and valid up to %[2]d, error %[3]v", h.Slot, h.LastValidBlockHeight, err, order[0])
			}
		})
	}
}

// TestFailedSimulationNeedsTwoEndpoints: one of several endpoints alone cannot fail a simulation.
func TestFailedSimulationNeedsTwoEndpoints(t *testing.T) {
	t.Parallel()
	simulated := func(err string) reply {
		return resultReply(fmt.Sprintf(`{"context":{"slot":100},"value":{"err":%s,"unitsConsumed":7}}`, err))
	}
	fails, failsDifferently, succeeds := simulated(`"AccountInUse"`), simulated(`"ProgramAccountNotFound"`), simulated("null")
	tests := map[string]struct {
		answers        []reply
		wantErr        bool
		wantUnverified bool
	}{
		"a single endpoint is believed":                     {answers: []reply{fails}, wantErr: true},
		"a success needs no second endpoint":                {answers: []reply{succeeds, serverError}},
		"one of two lies that it fails":                     {answers: []reply{fails, succeeds}},
		"two report the same failure":                       {answers: []reply{fails, fails}, wantErr: true},
		"two report different failures":                     {answers: []reply{fails, failsDifferently}, wantErr: true, wantUnverified: true},
		"the other is down":                                 {answers: []reply{fails, serverError}, wantErr: true, wantUnverified: true},
		"first and third report the same failure":           {answers: []reply{fails, failsDifferently, fails}, wantErr: true},
		"second and third report the same failure":          {answers: []reply{fails, failsDifferently, failsDifferently}, wantErr: true},
		"one of three reports success":                      {answers: []reply{fails, failsDifferently, succeeds}},
		"two of three report the same failure, one is down": {answers: []reply{fails, serverError, fails}, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				names := []string{"a", "b", "c"}[:len(test.answers)]
				n := newNetwork(names...)
				for i, name := range names {
					n[name].set("simulateTransaction", test.answers[i])
				}
				e, _ := newEndpoints(t, n, endpointsNamed(names...), nil)
				got, err := e.Simulate(t.Context(), []byte{1}, true, 0)
				if err != nil || (got.Err != nil) != test.wantErr || got.Unverified != test.wantUnverified {
					t.Errorf("simulation is %+v with error %v, want failure: %v, unverified: %v", got, err, test.wantErr, test.wantUnverified)
				}
			})
		})
	}
}

// TestUncorroboratedSlotDoesNotRaiseMinContextSlot: the slot of an answer becomes the minContextSlot of the next
// call. If one endpoint could raise it, no honest endpoint could answer.
func TestUncorroboratedSlotDoesNotRaiseMinContextSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("liar", "honest")
		n["honest"].setSlot(1000)
		n["liar"].setSlot(1000)
		e, _ := newEndpoints(t, n, endpointsNamed("liar", "honest"), nil)
		startPolling(t, e, n, "liar", "honest")
		pool := testPool(t)
		reader, err := NewPool(PoolOptions{Accounts: e, Pool: pool, Now: time.Now, Corroborated: e.Corroborated})
		if err != nil {
			t.Fatal(err)
		}
		minContextSlot := n["honest"].currentSlot() - 5
		for ahead, wantRaised := range map[uint64]bool{3: true, 50: false} {
			slot := n["honest"].currentSlot() + ahead
			n["liar"].set("simulateTransaction", resultReply(fmt.Sprintf(`{"context":{"slot":%d},"value":{"err":null,"unitsConsumed":7}}`, slot)))
			n["liar"].set("getMultipleAccounts", resultReply(fmt.Sprintf(`{"context":{"slot":%d},"value":[null]}`, slot)))
			simulated, err := e.Simulate(t.Context(), raw, true, minContextSlot)
			if err != nil || (simulated.Slot == slot) != wantRaised || simulated.Slot < minContextSlot {
				t.Errorf("%d slots ahead: the simulation is of slot %d, error %v; want slot %d: %v", ahead, simulated.Slot, err, slot, wantRaised)
			}
			inspection, err := reader.Inspect(t.Context(), &shieldpool.PublicInputs{Nullifiers: [2][32]byte{{31: 1}}}, solana.PublicKey{}, minContextSlot)
			if err != nil || (inspection.Slot == slot) != wantRaised || inspection.Slot < minContextSlot {
				t.Errorf("%d slots ahead: the inspection is of slot %d, error %v; want slot %d: %v", ahead, inspection.Slot, err, slot, wantRaised)
			}
		}
	})
}

// TestStatusFromEndpointWithWrongSlotIsUsed: one of two endpoints claims to be far ahead. Its
// status of a signature and its simulation are used; its slot is not.
func TestStatusFromEndpointWithWrongSlotIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("honest", "liar")
		n["honest"].setSlot(200)
		n["liar"].setSlot(200)
		e, _ := newEndpoints(t, n, endpointsNamed("honest", "liar"), nil)
		startPolling(t, e, n, "honest", "liar")
		if !e.Corroborated(n["honest"].currentSlot()) {
			t.Fatal("the two endpoints do not agree")
		}
		const ahead = 1_000_000
		n["liar"].setSlot(ahead)
		status := func(slot int) reply {
			return resultReply(fmt.Sprintf(`{"context":{"slot":%d},"value":[{"confirmationStatus":"finalized","err":null,"slot":72}]}`, slot))
		}
		fails := func(slot int) reply {
			return resultReply(fmt.Sprintf(`{"context":{"slot":%d},"value":{"err":"AccountInUse","logs":[],"unitsConsumed":1}}`, slot))
		}
		n["honest"].set("getSignatureStatuses", status(200))
		n["liar"].set("getSignatureStatuses", status(ahead))
		n["honest"].set("simulateTransaction", fails(200))
		n["liar"].set("simulateTransaction", fails(ahead))
		want := []*onchain.Status{{Slot: 72, Confirmation: onchain.Finalized}}
		found, err := e.Search(t.Context(), []solana.Signature{sigA})
		if diff := cmp.Diff(want, found.Statuses); err != nil || diff != "" {
			t.Errorf("error is %v, and the statuses of the search differ (-want +got):\n%s", err, diff)
		}
		if found.FinalizedSlot > 200 || found.FinalizedHeight != 0 {
			t.Errorf("search returned %+v, want a slot of at most 200 and no finalized height", found)
		}
		statuses, _, err := e.Statuses(t.Context(), []solana.Signature{sigA})
		if diff := cmp.Diff(want, statuses); err != nil || diff != "" {
			t.Errorf("error is %v, and statuses differ (-want +got):\n%s", err, diff)
		}
		if sim, err := e.Simulate(t.Context(), []byte{1}, true, 0); err != nil || sim.Err == nil || sim.Unverified || sim.Slot != 200 {
			t.Errorf("the simulation is %+v with error %v, want a verified failure in slot 200", sim, err)
		}
	})
}
