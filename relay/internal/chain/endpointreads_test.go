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

func archives(names ...string) []Endpoint {
	endpoints := of(names...)
	endpoints[0].Roles = []Role{RoleArchive}
	return endpoints
}

// TestSearchIsOfOneEndpoint: a look consists of the answers of one endpoint only, whichever of
// the three calls fails at another, and its horizon is what a second one corroborates.
func TestSearchIsOfOneEndpoint(t *testing.T) {
	t.Parallel()
	fromBoth := onchain.SearchResult{Statuses: []*onchain.Status{nil}, Slot: 200, FinalizedSlot: 68, FinalizedHeight: 60, FirstAvailable: 1}
	fromOther := onchain.SearchResult{Statuses: []*onchain.Status{nil}, Slot: 100, FinalizedSlot: 68, FirstAvailable: 3}
	status := func(slot int) reply {
		return says(fmt.Sprintf(`{"context":{"slot":%d},"value":[null]}`, slot))
	}
	tests := map[string]struct {
		method string
		answer reply
		want   onchain.SearchResult
	}{
		"the archive answers":                      {"getSlot", sick, fromBoth},
		"it does not tell the horizon":             {"getEpochInfo", sick, fromOther},
		"it does not tell its history":             {"getFirstAvailableBlock", sick, fromOther},
		"it does not tell the statuses":            {"getSignatureStatuses", sick, fromOther},
		"its statuses are from before its horizon": {"getSignatureStatuses", status(167), fromOther},
		"its statuses are from its horizon":        {"getSignatureStatuses", status(168), func() onchain.SearchResult { l := fromBoth; l.Slot = 168; return l }()},
		"its height is above its slot":             {"getEpochInfo", says(`{"absoluteSlot":5,"blockHeight":6}`), fromOther},
		"its history is switched off":              {"getSignatureStatuses", refuses(`{"code":-32011,"message":"Transaction history is not available from this node"}`), fromOther},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("archive", "other")
				n["archive"].at(200)
				n["archive"].set("getFirstAvailableBlock", says("1"))
				n["archive"].set(test.method, test.answer)
				e, _ := newEndpoints(t, n, archives("archive", "other"), nil)
				got, err := e.Search(t.Context(), []solana.Signature{sigA})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("look differs (-want +got):\n%s", diff)
				}
				if got, want := n["archive"].params("getSignatureStatuses"), fmt.Sprintf(`[[%q],{"searchTransactionHistory":true}]`, sigA); got != "" && got != want {
					t.Errorf("asked %s, want %s", got, want)
				}
			})
		})
	}
}

// oneSays is the status when a single endpoint reports it.
func oneSays(s *onchain.Status) *onchain.Status {
	c := *s
	c.Unverified = true
	return &c
}

func TestSearchAsksAnother(t *testing.T) {
	t.Parallel()
	landed := &onchain.Status{Slot: 72, Confirmation: onchain.Finalized}
	known := `{"confirmationStatus":"finalized","err":null,"slot":72}`
	failed := `{"confirmationStatus":"finalized","err":"AccountInUse","slot":72}`
	confirmed, processed := `{"confirmationStatus":"confirmed","err":null,"slot":72}`, `{"confirmationStatus":"processed","err":null,"slot":72}`
	says2 := func(a, b string) reply {
		return says(fmt.Sprintf(`{"context":{"slot":100},"value":[%s,%s]}`, a, b))
	}
	tests := map[string]struct {
		archive, other reply
		want           []*onchain.Status
		wantHeight     uint64 // 0 when it is not corroborated
		wantAsked      int    // of the other
	}{
		"both know all":                          {says2(known, known), says2(known, known), []*onchain.Status{landed, landed}, 60, 1},
		"each knows one, which nobody bears out": {says2("null", known), says2(known, "null"), []*onchain.Status{oneSays(landed), oneSays(landed)}, 60, 1},
		"both know neither":                      {says2("null", "null"), says2("null", "null"), []*onchain.Status{nil, nil}, 60, 1},
		"the other says that one failed":         {says2("null", known), says2("null", failed), []*onchain.Status{nil, oneSays(landed)}, 60, 1},
		"the other has not come so far":          {says2(confirmed, known), says2(processed, confirmed), []*onchain.Status{{Slot: 72, Confirmation: onchain.Processed}, {Slot: 72, Confirmation: onchain.Confirmed}}, 60, 1},
		"the other is down: nothing is known":    {says2("null", known), sick, []*onchain.Status{nil, oneSays(landed)}, 0, 1},
		"the other hangs, and is left":           {says2("null", known), reply{hang: true}, []*onchain.Status{nil, oneSays(landed)}, 0, 1},
		"what is said to be under way is asked":  {says2(processed, processed), says2(known, "null"), []*onchain.Status{{Slot: 72, Confirmation: onchain.Processed}, {Slot: 72, Confirmation: onchain.Processed}}, 60, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("archive", "other")
				n["archive"].set("getSignatureStatuses", test.archive)
				n["other"].set("getSignatureStatuses", test.other)
				e, _ := newEndpoints(t, n, archives("archive", "other"), nil)
				got, err := e.Search(t.Context(), []solana.Signature{sigA, sigB})
				if err != nil {
					t.Fatal(err)
				}
				want := onchain.SearchResult{Statuses: test.want, Slot: 100, FinalizedSlot: 68, FinalizedHeight: test.wantHeight, FirstAvailable: 3}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("look differs (-want +got):\n%s", diff)
				}
				if got := n["other"].count("getSignatureStatuses"); got != test.wantAsked {
					t.Errorf("the other was asked %d times, want %d", got, test.wantAsked)
				}
			})
		})
	}
}

// TestNothingIsDoubted: when one endpoint knows nothing, another is asked; an endpoint that is
// down makes no answer worse.
func TestNothingIsDoubted(t *testing.T) {
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
	valued := func(v string) reply { return says(`{"context":{"slot":100},"value":` + v + `}`) }
	tests := map[string]struct {
		do                 func(context.Context, *Endpoints) (any, error)
		method             string
		nothing, something reply
	}{
		"an account": {accounts, "getMultipleAccounts", valued(`[null]`), valued("[" + account + "]")},
		"a balance":  {balance, "getBalance", valued(`0`), valued(`7`)},
		"balances":   {balances, "getMultipleAccounts", valued(`[null,` + account + `]`), valued("[" + account + "," + account + "]")},
		"a history":  {history, "getSignaturesForAddress", says(`[]`), says(fmt.Sprintf(`[{"signature":%q,"slot":7,"err":null}]`, sigA))},
	}
	for name, test := range tests {
		others := map[string]struct {
			first, second reply
			open          bool
			want          bool
			wantAsked     int // of the second
		}{
			"that both know is asked for once":          {first: test.something, second: sick, want: true},
			"that the other knows":                      {first: test.nothing, second: test.something, want: true, wantAsked: 1},
			"that nobody knows":                         {first: test.nothing, second: test.nothing, wantAsked: 1},
			"that the other cannot tell":                {first: test.nothing, second: sick, wantAsked: 1},
			"that the other, which fails, is not asked": {first: test.nothing, second: test.something, open: true},
		}
		for which, other := range others {
			t.Run(name+" "+which, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork("a", "b")
					n["a"].set(test.method, other.first)
					n["b"].set(test.method, other.second)
					e, _ := newEndpoints(t, n, of("a", "b"), nil)
					if other.open {
						open(e.all[1])
					}
					got, err := test.do(t.Context(), e)
					if err != nil || got != other.want {
						t.Errorf("something was found: %v with error %v, want %v", got, err, other.want)
					}
					if got := n["b"].count(test.method); got != other.wantAsked {
						t.Errorf("the other was asked %d times, want %d", got, other.wantAsked)
					}
				})
			})
		}
	}
}

func TestHistoryThatOneEndpointHasNot(t *testing.T) {
	t.Parallel()
	pruned, skipped := refuses(`{"code":-32001,"message":"Block 5 cleaned up"}`), refuses(`{"code":-32007,"message":"Slot 5 was skipped"}`)
	block := says(fmt.Sprintf(`{"blockhash":%q,"previousBlockhash":%q,"parentSlot":4,"transactions":[]}`, hashA, hashA))
	tests := map[string]struct {
		archive, other reply
		open           bool // the archive's breaker
		want           bool
		wantErr        error
	}{
		"the archive has it":                            {archive: block, other: pruned, want: true},
		"the archive has it not":                        {archive: skipped, other: block, want: true},
		"none has it":                                   {archive: skipped, other: pruned, wantErr: onchain.ErrBlockPruned},
		"none knows of one":                             {archive: skipped, other: skipped, wantErr: onchain.ErrSlotSkipped},
		"the archive is down, so nobody knows":          {archive: sick, other: pruned, wantErr: onchain.ErrUnavailable},
		"the archive is not asked now, so nobody knows": {archive: block, other: pruned, open: true, wantErr: onchain.ErrUnavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("archive", "other")
				n["archive"].set("getBlock", test.archive)
				n["other"].set("getBlock", test.other)
				e, _ := newEndpoints(t, n, archives("archive", "other"), nil)
				if test.open {
					open(e.all[0])
				}
				b, err := e.Block(t.Context(), 5, solana.PublicKey{1})
				if (b != nil) != test.want {
					t.Errorf("block is %+v", b)
				}
				if test.wantErr != nil {
					checkError(t, err, onchain.KindOf(err), 0, test.wantErr)
				}
			})
		})
	}
}

func TestPaymentThatIsNotKnown(t *testing.T) {
	t.Parallel()
	null := says("null")
	tests := map[string]struct {
		archive, other reply
		open           bool
		wantErr        error
	}{
		"nobody knows it":                      {archive: null, other: null},
		"one does not, the other is down":      {archive: null, other: sick, wantErr: onchain.ErrUnavailable},
		"one does not, the other is not asked": {archive: null, other: null, open: true, wantErr: onchain.ErrUnavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("archive", "other")
				n["archive"].set("getTransaction", test.archive)
				n["other"].set("getTransaction", test.other)
				e, _ := newEndpoints(t, n, archives("archive", "other"), nil)
				if test.open {
					open(e.all[1])
				}
				p, err := e.Payment(t.Context(), sigA, keyA)
				if p != nil || (err == nil) != (test.wantErr == nil) {
					t.Fatalf("payment is %+v with error %v", p, err)
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
		e, _ := newEndpoints(t, n, of("a"), nil)
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
		h.at(101)
		time.Sleep(499 * time.Millisecond)
		if got := get(); got.Slot != 100 || h.count("getLatestBlockhash") != 1 {
			t.Errorf("a fresh one was replaced: slot %d, %d calls", got.Slot, h.count("getLatestBlockhash"))
		}
		time.Sleep(time.Millisecond)
		if got := get(); got.Slot != 100 {
			t.Errorf("blockhash is of slot %d, want that which is there at once", got.Slot)
		}
		synctest.Wait()
		if got := get(); got.Slot != 101 || h.count("getLatestBlockhash") != 2 {
			t.Errorf("it was not replaced in the background: slot %d, %d calls", got.Slot, h.count("getLatestBlockhash"))
		}
		time.Sleep(time.Minute)
		h.at(250)
		if h.count("getLatestBlockhash") != 2 {
			t.Error("it is replaced though nobody uses it")
		}
		if got := get(); got.Slot != 250 {
			t.Errorf("blockhash is of slot %d, want none older than a second", got.Slot)
		}
		h.fail(sick)
		time.Sleep(2 * time.Second)
		_, err := e.LatestBlockhash(t.Context())
		checkError(t, err, onchain.KindServerError, 0, nil)
	})
}

func TestBlockhashThatIsNotTaken(t *testing.T) {
	t.Parallel()
	answer := func(slot, hashSlot, height uint64) reply {
		return says(fmt.Sprintf(`{"context":{"slot":%d},"value":{"blockhash":%q,"lastValidBlockHeight":%d}}`, slot, hashOf(hashSlot), height))
	}
	tests := map[string]struct {
		first, then reply
		wantText    string // of the error of endpoint a alone
	}{
		"one of a slot far behind":             {answer(180, 180, 330), answer(189, 189, 339), "its blockhash is of slot 189, 11 behind the best endpoint"},
		"the very answer of before":            {answer(180, 180, 330), answer(180, 180, 330), "its blockhash is of slot 180, 20 behind the best endpoint"},
		"one that has not changed for long":    {answer(180, 180, 330), answer(200, 180, 330), "its blockhash has not changed for 20 slots"},
		"one whose height is far behind":       {answer(190, 190, 340), answer(200, 200, 325), "its blockhash is valid up to height 325, 15 below what the chain has reached"},
		"one a little behind is taken":         {answer(180, 180, 330), answer(190, 190, 340), ""},
		"one whose height a little is behind":  {answer(190, 190, 340), answer(200, 200, 330), ""},
		"one that has not changed for a while": {answer(190, 190, 340), answer(200, 190, 340), ""},
	}
	for name, test := range tests {
		for _, alone := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, alone %v", name, alone), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork("a", "b")
					n["a"].at(188)
					n["b"].at(188)
					n["a"].set("getLatestBlockhash", test.first)
					endpoints := of("a", "b")
					if alone {
						endpoints = of("a")
					}
					e, _ := newEndpoints(t, n, endpoints, nil)
					if _, err := e.LatestBlockhash(t.Context()); err != nil {
						t.Fatal(err)
					}
					n["a"].at(200)
					n["b"].at(201)
					n["a"].set("getLatestBlockhash", test.then)
					time.Sleep(4 * time.Second) // in which a chain comes so far
					// Any answer of a later slot shows which endpoint is behind.
					if _, err := e.Slot(t.Context(), onchain.Confirmed); err != nil {
						t.Fatal(err)
					}
					got, err := e.LatestBlockhash(t.Context())
					switch {
					case test.wantText == "":
						if err != nil || got.Slot < 190 || got.Slot > 200 {
							t.Errorf("blockhash is %+v with error %v, want that of a", got, err)
						}
					case alone:
						checkError(t, err, onchain.KindNodeBehind, 0, nil)
						if !strings.Contains(fmt.Sprint(err), test.wantText) {
							t.Errorf("error is %v, want %q in it", err, test.wantText)
						}
					case err != nil || got.Slot != 201:
						t.Errorf("blockhash is %+v with error %v, want that of b", got, err)
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
		n["b"].at(95) // a little behind, as another node is
		e, _ := newEndpoints(t, n, of("a", "b"), nil)
		for _, broken := range []bool{false, true} {
			if broken {
				n["a"].fail(sick)
			}
			if got, err := e.LatestBlockhash(t.Context()); err != nil || got.Slot != 100 {
				t.Errorf("blockhash is %+v with error %v, want the newest, of slot 100", got, err)
			}
			time.Sleep(time.Second)
		}
	})
}
