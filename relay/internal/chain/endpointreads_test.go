package chain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
)

// archiveFirst configures endpoints, the first of which is an archive.
func archiveFirst(names ...string) []Endpoint {
	endpoints := endpointsNamed(names...)
	endpoints[0].Roles = []Role{RoleArchive}
	return endpoints
}

// TestSearchResultComesFromOneEndpoint: when one of a search's calls fails at an endpoint, all answers come
// from another one. The finalized height is reported only if a second endpoint corroborates it.
func TestSearchResultComesFromOneEndpoint(t *testing.T) {
	t.Parallel()
	fromBoth := onchain.SearchResult{Statuses: []*onchain.Status{nil}, Slot: 200, FinalizedSlot: 68, FinalizedHeight: 60, FirstAvailable: 1}
	fromOther := onchain.SearchResult{Statuses: []*onchain.Status{nil}, Slot: 100, FinalizedSlot: 68, FirstAvailable: 3}
	status := func(slot int) reply {
		return resultReply(fmt.Sprintf(`{"context":{"slot":%d},"value":[null]}`, slot))
	}
	tests := map[string]struct {
		method string
		answer reply
		want   onchain.SearchResult
	}{
		"the archive answers":                              {"getSlot", serverError, fromBoth},
		"its finalized block cannot be read":               {"getEpochInfo", serverError, fromOther},
		"its first block cannot be read":                   {"getFirstAvailableBlock", serverError, fromOther},
		"its statuses cannot be read":                      {"getSignatureStatuses", serverError, fromOther},
		"its statuses are from before its finalized block": {"getSignatureStatuses", status(167), fromOther},
		"its statuses are from its finalized block":        {"getSignatureStatuses", status(168), func() onchain.SearchResult { r := fromBoth; r.Slot = 168; return r }()},
		"its height is above its slot":                     {"getEpochInfo", resultReply(`{"absoluteSlot":5,"blockHeight":6}`), fromOther},
		"its history is switched off":                      {"getSignatureStatuses", errorReply(`{"code":-32011,"message":"Transaction history is not available from this node"}`), fromOther},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("archive", "other")
				n["archive"].setSlot(200)
				n["archive"].set("getFirstAvailableBlock", resultReply("1"))
				n["archive"].set(test.method, test.answer)
				e, _ := newEndpoints(t, n, archiveFirst("archive", "other"), nil)
				got, err := e.Search(t.Context(), []solana.Signature{sigA})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("search result differs (-want +got):\n%s", diff)
				}
				if got, want := n["archive"].params("getSignatureStatuses"), fmt.Sprintf(`[[%q],{"searchTransactionHistory":true}]`, sigA); got != "" && got != want {
					t.Errorf("parameters are %s, want %s", got, want)
				}
			})
		})
	}
}

// unverified returns the status as it is when only one endpoint reports it.
func unverified(s *onchain.Status) *onchain.Status {
	c := *s
	c.Unverified = true
	return &c
}

func TestSearchAsksASecondEndpoint(t *testing.T) {
	t.Parallel()
	landed := &onchain.Status{Slot: 72, Confirmation: onchain.Finalized}
	finalized := `{"confirmationStatus":"finalized","err":null,"slot":72}`
	failed := `{"confirmationStatus":"finalized","err":"AccountInUse","slot":72}`
	confirmed, processed := `{"confirmationStatus":"confirmed","err":null,"slot":72}`, `{"confirmationStatus":"processed","err":null,"slot":72}`
	answer := func(a, b string) reply {
		return resultReply(fmt.Sprintf(`{"context":{"slot":100},"value":[%s,%s]}`, a, b))
	}
	tests := map[string]struct {
		archive, other reply
		want           []*onchain.Status
		wantHeight     uint64 // 0 when it is not corroborated
		wantAsked      int    // calls at the other endpoint
	}{
		"both know both signatures":           {answer(finalized, finalized), answer(finalized, finalized), []*onchain.Status{landed, landed}, 60, 1},
		"each knows one of the two":           {answer("null", finalized), answer(finalized, "null"), []*onchain.Status{unverified(landed), unverified(landed)}, 60, 1},
		"neither knows a signature":           {answer("null", "null"), answer("null", "null"), []*onchain.Status{nil, nil}, 60, 1},
		"the other reports a failure":         {answer("null", finalized), answer("null", failed), []*onchain.Status{nil, unverified(landed)}, 60, 1},
		"the other is less advanced":          {answer(confirmed, finalized), answer(processed, confirmed), []*onchain.Status{{Slot: 72, Confirmation: onchain.Processed}, {Slot: 72, Confirmation: onchain.Confirmed}}, 60, 1},
		"the other is down":                   {answer("null", finalized), serverError, []*onchain.Status{nil, unverified(landed)}, 0, 1},
		"the other hangs":                     {answer("null", finalized), reply{hang: true}, []*onchain.Status{nil, unverified(landed)}, 0, 1},
		"processed statuses are corroborated": {answer(processed, processed), answer(finalized, "null"), []*onchain.Status{{Slot: 72, Confirmation: onchain.Processed}, {Slot: 72, Confirmation: onchain.Processed}}, 60, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("archive", "other")
				n["archive"].set("getSignatureStatuses", test.archive)
				n["other"].set("getSignatureStatuses", test.other)
				e, _ := newEndpoints(t, n, archiveFirst("archive", "other"), nil)
				got, err := e.Search(t.Context(), []solana.Signature{sigA, sigB})
				if err != nil {
					t.Fatal(err)
				}
				want := onchain.SearchResult{Statuses: test.want, Slot: 100, FinalizedSlot: 68, FinalizedHeight: test.wantHeight, FirstAvailable: 3}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("search result differs (-want +got):\n%s", diff)
				}
				if got := n["other"].count("getSignatureStatuses"); got != test.wantAsked {
					t.Errorf("the other endpoint was asked %d times, want %d", got, test.wantAsked)
				}
			})
		})
	}
}

// TestEmptyAnswerIsCheckedAtSecondEndpoint: when an endpoint's answer is empty, a second endpoint is asked. If that one
// is down, the empty answer is returned without an error.
func TestEmptyAnswerIsCheckedAtSecondEndpoint(t *testing.T) {
	t.Parallel()
	account := fmt.Sprintf(`{"data":["","base64"],"executable":false,"lamports":7,"owner":%q}`, keyB)
	accounts := func(ctx context.Context, e *Endpoints) (any, error) {
		a, _, err := e.Accounts(ctx, []solana.PublicKey{keyA}, onchain.Confirmed, 0)
		return len(a) == 1 && a[0] != nil && a[0].Lamports == 7, err
	}
	balance := func(ctx context.Context, e *Endpoints) (any, error) {
		lamports, _, err := e.Balance(ctx, keyA, 0)
		return lamports == 7, err
	}
	balances := func(ctx context.Context, e *Endpoints) (any, error) {
		lamports, _, err := e.Balances(ctx, []solana.PublicKey{keyA, keyB})
		return slices.Equal(lamports, []uint64{7, 7}), err
	}
	history := func(ctx context.Context, e *Endpoints) (any, error) {
		infos, err := e.SignaturesFor(ctx, keyA, onchain.Finalized, solana.Signature{}, solana.Signature{}, 0)
		return len(infos) == 1 && infos[0].Signature == sigA, err
	}
	valued := func(v string) reply { return resultReply(`{"context":{"slot":100},"value":` + v + `}`) }
	tests := map[string]struct {
		do           func(context.Context, *Endpoints) (any, error)
		method       string
		empty, found reply
	}{
		"an account": {accounts, "getMultipleAccounts", valued(`[null]`), valued("[" + account + "]")},
		"a balance":  {balance, "getBalance", valued(`0`), valued(`7`)},
		"balances":   {balances, "getMultipleAccounts", valued(`[null,` + account + `]`), valued("[" + account + "," + account + "]")},
		"a history":  {history, "getSignaturesForAddress", resultReply(`[]`), resultReply(fmt.Sprintf(`[{"signature":%q,"slot":7,"err":null}]`, sigA))},
	}
	for name, test := range tests {
		endpoints := map[string]struct {
			first, second reply
			secondOpen    bool // the second one's breaker
			want          bool
			wantAsked     int // calls at the second endpoint
		}{
			"known to the first":                                 {first: test.found, second: serverError, want: true},
			"known to the second":                                {first: test.empty, second: test.found, want: true, wantAsked: 1},
			"known to neither":                                   {first: test.empty, second: test.empty, wantAsked: 1},
			"unknown to the first, the second is down":           {first: test.empty, second: serverError, wantAsked: 1},
			"unknown to the first, the second's breaker is open": {first: test.empty, second: test.found, secondOpen: true},
		}
		for state, scenario := range endpoints {
			t.Run(name+" "+state, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork("a", "b")
					n["a"].set(test.method, scenario.first)
					n["b"].set(test.method, scenario.second)
					e, _ := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
					if scenario.secondOpen {
						openBreaker(e.all[1])
					}
					got, err := test.do(t.Context(), e)
					if err != nil || got != scenario.want {
						t.Errorf("value found: %v, error %v; want found: %v and no error", got, err, scenario.want)
					}
					if got := n["b"].count(test.method); got != scenario.wantAsked {
						t.Errorf("the second endpoint was asked %d times, want %d", got, scenario.wantAsked)
					}
				})
			})
		}
	}
}

func TestBlockMissingAtOneEndpoint(t *testing.T) {
	t.Parallel()
	pruned, skipped := errorReply(`{"code":-32001,"message":"Block 5 cleaned up"}`), errorReply(`{"code":-32007,"message":"Slot 5 was skipped"}`)
	block := resultReply(fmt.Sprintf(`{"blockhash":%q,"previousBlockhash":%q,"parentSlot":4,"transactions":[]}`, hashA, hashA))
	tests := map[string]struct {
		archive, other reply
		open           bool // the archive's breaker
		want           bool
		wantErr        error
	}{
		"the archive has it":            {archive: block, other: pruned, want: true},
		"the archive does not have it":  {archive: skipped, other: block, want: true},
		"neither has it":                {archive: skipped, other: pruned, wantErr: onchain.ErrBlockPruned},
		"both report a skipped slot":    {archive: skipped, other: skipped, wantErr: onchain.ErrSlotSkipped},
		"the archive is down":           {archive: serverError, other: pruned, wantErr: onchain.ErrUnavailable},
		"the archive's breaker is open": {archive: block, other: pruned, open: true, wantErr: onchain.ErrUnavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("archive", "other")
				n["archive"].set("getBlock", test.archive)
				n["other"].set("getBlock", test.other)
				e, _ := newEndpoints(t, n, archiveFirst("archive", "other"), nil)
				if test.open {
					openBreaker(e.all[0])
				}
				b, err := (&History{Endpoints: e}).Block(t.Context(), 5, solana.PublicKey{1})
				if (b != nil) != test.want {
					t.Errorf("got block %+v, want a block: %v", b, test.want)
				}
				if test.wantErr != nil {
					checkError(t, err, onchain.KindOf(err), 0, test.wantErr)
				}
			})
		})
	}
}

func TestADistrustedEndpointIsAskedLastForHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		names := []string{"archive", "b", "c"}
		n := newNetwork(names...)
		blocks := make([]reply, len(names))
		for i, name := range names {
			blocks[i] = resultReply(fmt.Sprintf(`{"blockhash":%q,"previousBlockhash":%q,"parentSlot":%d,"transactions":[]}`, hashA, hashA, i))
			n[name].set("getBlock", blocks[i])
			n[name].set("getSignaturesForAddress", resultReply(fmt.Sprintf(`[{"signature":%q,"slot":%d,"err":null}]`, sigA, i)))
		}
		e, _ := newEndpoints(t, n, archiveFirst(names...), nil)
		h := &History{Endpoints: e}
		want := func(what string, endpoint uint64) {
			t.Helper()
			if b, err := h.Block(t.Context(), 5, keyA); err != nil || b.Parent != endpoint {
				t.Errorf("%s: the block is %+v, error %v, want that of endpoint %d", what, b, err, endpoint)
			}
			if listed, err := h.SignaturesFor(t.Context(), keyA, onchain.Confirmed, solana.Signature{}, solana.Signature{}, 10); err != nil || len(listed) != 1 || listed[0].Slot != endpoint {
				t.Errorf("%s: %+v is listed, error %v, want the list of endpoint %d", what, listed, err, endpoint)
			}
			if b, err := e.SignaturesFor(t.Context(), keyA, onchain.Confirmed, solana.Signature{}, solana.Signature{}, 10); err != nil || b[0].Slot != 0 {
				t.Errorf("%s: another reader's list is %+v, error %v, want that of the archive", what, b, err)
			}
		}
		distrust := func(before int) {
			t.Helper()
			if !h.Distrust(before) {
				t.Error("there is another endpoint")
			}
		}
		want("all are trusted", 0)
		distrust(0)
		want("the archive is not", 1)
		distrust(0)
		want("the second one is not", 0)
		distrust(1)
		want("the third one is not", 0)
		distrust(2)
		want("the archive is not, again", 1)
		for _, method := range []string{"getBlock", "getSignaturesForAddress"} {
			n["b"].set(method, serverError)
		}
		want("the archive is not, and the second one is down", 2)
		for _, method := range []string{"getBlock", "getSignaturesForAddress"} {
			n["c"].set(method, serverError)
		}
		want("only the distrusted one is left", 0)
		one, _ := newEndpoints(t, n, endpointsNamed("b"), nil)
		if h := (&History{Endpoints: one}); h.Distrust(0) {
			t.Error("one endpoint alone is said to be several")
		}
	})
}

func TestUnknownPayment(t *testing.T) {
	t.Parallel()
	null := resultReply("null")
	tests := map[string]struct {
		archive, other reply
		open           bool
		wantErr        error
	}{
		"unknown to both":                             {archive: null, other: null},
		"unknown to one, the other is down":           {archive: null, other: serverError, wantErr: onchain.ErrUnavailable},
		"unknown to one, the other's breaker is open": {archive: null, other: null, open: true, wantErr: onchain.ErrUnavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("archive", "other")
				n["archive"].set("getTransaction", test.archive)
				n["other"].set("getTransaction", test.other)
				e, _ := newEndpoints(t, n, archiveFirst("archive", "other"), nil)
				if test.open {
					openBreaker(e.all[1])
				}
				p, err := e.Payment(t.Context(), sigA, keyA)
				if p != nil || (err == nil) != (test.wantErr == nil) {
					t.Fatalf("payment is %+v with error %v, want none and error %v", p, err, test.wantErr)
				}
				if test.wantErr != nil {
					checkError(t, err, onchain.KindOf(err), 0, test.wantErr)
				}
			})
		})
	}
}

func TestBlockhashIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a")
		h := n["a"]
		e, _ := newEndpoints(t, n, endpointsNamed("a"), nil)
		get := func() onchain.Blockhash {
			t.Helper()
			got, err := e.LatestBlockhash(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if got := get(); got.Slot != 100 || got.Hash != hashOf(100) || got.LastValidBlockHeight != 250 {
					t.Errorf("blockhash is %+v, want that of slot 100", got)
				}
			})
		}
		wg.Wait()
		if got := h.count("getLatestBlockhash"); got != 1 {
			t.Errorf("%d calls for 50 callers, want 1", got)
		}
		h.setSlot(101)
		time.Sleep(499 * time.Millisecond)
		if got := get(); got.Slot != 100 || h.count("getLatestBlockhash") != 1 {
			t.Errorf("a blockhash younger than half a second was replaced: slot %d, %d calls", got.Slot, h.count("getLatestBlockhash"))
		}
		time.Sleep(time.Millisecond)
		if got := get(); got.Slot != 100 {
			t.Errorf("blockhash is of slot %d, want the cached one of slot 100", got.Slot)
		}
		synctest.Wait()
		if got := get(); got.Slot != 101 || h.count("getLatestBlockhash") != 2 {
			t.Errorf("the blockhash was not replaced in the background: slot %d, %d calls", got.Slot, h.count("getLatestBlockhash"))
		}
		time.Sleep(time.Minute)
		h.setSlot(250)
		if h.count("getLatestBlockhash") != 2 {
			t.Error("the blockhash was replaced although no caller asked for one")
		}
		if got := get(); got.Slot != 250 {
			t.Errorf("blockhash is of slot %d, want a new one of slot 250", got.Slot)
		}
		h.fail(serverError)
		time.Sleep(2 * time.Second)
		_, err := e.LatestBlockhash(t.Context())
		checkError(t, err, onchain.KindServerError, 0, nil)
	})
}

func TestOutdatedBlockhashIsRefused(t *testing.T) {
	t.Parallel()
	answer := func(slot, hashSlot, height uint64) reply {
		return resultReply(fmt.Sprintf(`{"context":{"slot":%d},"value":{"blockhash":%q,"lastValidBlockHeight":%d}}`, slot, hashOf(hashSlot), height))
	}
	tests := map[string]struct {
		first, second reply
		wantText      string // in the error when a is the only endpoint; empty if the blockhash is used
	}{
		"its slot is far behind":        {answer(180, 180, 330), answer(189, 189, 339), "its blockhash is of slot 189, 11 behind the best endpoint"},
		"the same answer as before":     {answer(180, 180, 330), answer(180, 180, 330), "its blockhash is of slot 180, 20 behind the best endpoint"},
		"unchanged for too many slots":  {answer(180, 180, 330), answer(200, 180, 330), "its blockhash has not changed for 20 slots"},
		"its height is far behind":      {answer(190, 190, 340), answer(200, 200, 325), "its blockhash is valid up to height 325, 15 below what the chain has reached"},
		"a little behind":               {answer(180, 180, 330), answer(190, 190, 340), ""},
		"its height is a little behind": {answer(190, 190, 340), answer(200, 200, 330), ""},
		"unchanged for a few slots":     {answer(190, 190, 340), answer(200, 190, 340), ""},
	}
	for name, test := range tests {
		for _, alone := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, only endpoint: %v", name, alone), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork("a", "b")
					n["a"].setSlot(188)
					n["b"].setSlot(188)
					n["a"].set("getLatestBlockhash", test.first)
					endpoints := endpointsNamed("a", "b")
					if alone {
						endpoints = endpointsNamed("a")
					}
					e, _ := newEndpoints(t, n, endpoints, nil)
					if _, err := e.LatestBlockhash(t.Context()); err != nil {
						t.Fatal(err)
					}
					n["a"].setSlot(200)
					n["b"].setSlot(201)
					n["a"].set("getLatestBlockhash", test.second)
					time.Sleep(4 * time.Second) // the time that the chain needs for these slots
					// Any answer of a later slot shows which endpoint is behind.
					if _, err := e.Slot(t.Context(), onchain.Confirmed); err != nil {
						t.Fatal(err)
					}
					got, err := e.LatestBlockhash(t.Context())
					switch {
					case test.wantText == "":
						if err != nil || got.Slot < 190 || got.Slot > 200 {
							t.Errorf("blockhash is %+v with error %v, want that of endpoint a", got, err)
						}
					case alone:
						checkError(t, err, onchain.KindNodeBehind, 0, nil)
						if !strings.Contains(fmt.Sprint(err), test.wantText) {
							t.Errorf("error is %v, want %q in it", err, test.wantText)
						}
					case err != nil || got.Slot != 201:
						t.Errorf("blockhash is %+v with error %v, want that of endpoint b", got, err)
					}
				})
			})
		}
	}
}

func TestBlockhashDoesNotGoBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "b")
		n["b"].setSlot(95) // a little behind a, as nodes are
		e, _ := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
		for _, broken := range []bool{false, true} {
			if broken {
				n["a"].fail(serverError)
			}
			if got, err := e.LatestBlockhash(t.Context()); err != nil || got.Slot != 100 {
				t.Errorf("blockhash is %+v with error %v, want the newest, of slot 100", got, err)
			}
			time.Sleep(time.Second)
		}
	})
}
