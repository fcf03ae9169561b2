package crowd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/throughput/crowd"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// swapMarket returns a market with a price of three lamports a unit.
func swapMarket(t *testing.T) *load.Market {
	t.Helper()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	return &load.Market{Pool: pool, Mint: solana.PublicKey{31: 9}, Quote: func(_ context.Context, _ solana.PublicKey, lamports uint64) (uint64, error) {
		return lamports / 3, nil
	}}
}

// newSwapCrowd returns a crowd that polls its swaps almost without a pause.
func newSwapCrowd(t *testing.T, r *relay) *crowd.Crowd {
	t.Helper()
	o := options(t, r)
	o.Market, o.PollMin, o.PollMax = swapMarket(t), time.Millisecond, time.Millisecond
	c, err := crowd.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestSwapCountsOnceItsClientKnowsTheEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		last string
		want map[string]int
	}{
		"executed": {`{"data":{"status":"completed"}}`, map[string]int{"200": 1}},
		"refunded": {`{"data":{"status":"failed","error_code":"swap_refunded"}}`, map[string]int{"409swap_refunded": 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &relay{t: t, answer: accepting, statusBody: func(n int) string {
				return []string{`{"data":{"status":"processing"}}`, "not JSON", tc.last}[n]
			}}
			c := newSwapCrowd(t, r)
			c.Steady(t.Context(), 1000, prepare(t, c, 1))
			if diff := cmp.Diff(statuses(c.Calls()), tc.want); diff != "" || r.polls != 3 {
				t.Errorf("after %d polls, want 3; calls (-got +want):\n%s", r.polls, diff)
			}
			if path := r.all()[0].path; path != "/transact_swap" {
				t.Errorf("the request went to %s, want /transact_swap", path)
			}
		})
	}
}

func TestSwapWithoutAnEndCountsAsUnanswered(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := newSwapCrowd(t, &relay{t: t, answer: accepting, statusBody: func(n int) string {
		if n == 3 {
			stop()
		}
		return `{"data":{"status":"processing"}}`
	}})
	c.Steady(ctx, 1000, prepare(t, c, 1))
	if diff := cmp.Diff(statuses(c.Calls()), map[string]int{"0": 1}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
}

func TestSwapMinimumFollowsTheMarketsPrice(t *testing.T) {
	t.Parallel()
	c := newSwapCrowd(t, &relay{t: t, answer: accepting})
	for _, body := range prepare(t, c, 20) {
		var request struct {
			Minimum json.RawMessage `json:"min_output_amount"`
			Inputs  []byte          `json:"public_inputs"`
		}
		if err := json.Unmarshal(body, &request); err != nil {
			t.Fatal(err)
		}
		in, err := shieldpool.ParsePublicInputs(request.Inputs)
		if err != nil {
			t.Fatal(err)
		}
		net, _ := shieldpool.Development().Fees.Net(in.Gross())
		if got, want := strings.Trim(string(request.Minimum), `"`), fmt.Sprint(net/3*99/100); got[:4] != want[:4] {
			t.Errorf("minimum %s for %d lamports, want about %s", got, net, want)
		}
	}
}

func TestPrepareFailsWithoutAPrice(t *testing.T) {
	t.Parallel()
	o := options(t, &relay{t: t, answer: accepting})
	o.Market = swapMarket(t)
	unreachable := errors.New("the router is unreachable")
	o.Market.Quote = func(context.Context, solana.PublicKey, uint64) (uint64, error) { return 0, unreachable }
	c, err := crowd.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Prepare(t.Context(), 3); !errors.Is(err, unreachable) {
		t.Errorf("error %v, want the router's", err)
	}
}
