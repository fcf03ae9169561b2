package router

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/swap"
)

func TestARouterIsAskedWhenThoseBeforeItGaveNoQuote(t *testing.T) {
	t.Parallel()
	var (
		good     = reply{body: goodQuote}
		down     = reply{status: http.StatusInternalServerError}
		noRoute  = reply{status: http.StatusBadRequest, body: `{"errorCode":"NO_ROUTES_FOUND"}`}
		narrower = reply{status: http.StatusBadRequest, body: `{"errorCode":"TOO_LARGE"}`}
		liar     = reply{body: replaceIn(t, goodQuote, `"inAmount":"100000000"`, `"inAmount":"900000000"`)}
	)
	for name, test := range map[string]struct {
		routers []reply
		first   int
		asked   []string
		want    string // the router of the quote, or the error
	}{
		"the preferred router alone when it gives a quote":     {[]reply{good, good}, 0, []string{"a"}, "a"},
		"the next one when the first is down":                  {[]reply{down, good}, 0, []string{"a", "b"}, "b"},
		"the next one when the first has no route":             {[]reply{noRoute, good}, 0, []string{"a", "b"}, "b"},
		"the next one when the first lies":                     {[]reply{liar, good}, 0, []string{"a", "b"}, "b"},
		"the one that the request names, first":                {[]reply{good, good, good}, 1, []string{"b"}, "b"},
		"around the list, from the one that the request names": {[]reply{good, down, down}, 4, []string{"b", "c", "a"}, "a"},
		"no other for a route that is too large":               {[]reply{narrower, good}, 0, []string{"a"}, (&swap.NoRoute{Code: swap.CodeTooLarge}).Error()},
		"the answer of a router that works, when there is no quote": {
			[]reply{down, noRoute, down}, 0, []string{"a", "b", "c"}, swap.NewNoRoute("NO_ROUTES_FOUND").Error(),
		},
		"the preferred router's fault when none works": {
			[]reply{down, {status: http.StatusUnauthorized}}, 0, []string{"a", "b"},
			(&swap.RouterUnavailable{Kind: swap.FaultServerError, Detail: "HTTP 500"}).Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			clients := make([]*Client, len(test.routers))
			for i, r := range test.routers {
				memory := new(memoryRouter)
				label := string(rune('a' + i))
				memory.setAnswer(func(*http.Request) (*http.Response, error) {
					asked = append(asked, label)
					return response(r), nil
				})
				clients[i] = newClient(t, Options{Name: label, BaseURL: "https://router.example/v1", HTTP: &http.Client{Transport: memory}})
			}
			routers, err := NewRouters(clients...)
			if err != nil {
				t.Fatal(err)
			}
			request := quoteRequest
			request.First = test.first
			var got string
			if quote, err := routers.Quote(t.Context(), request); err != nil {
				got = err.Error()
			} else {
				got = quote.Router
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("answer differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.asked, asked); diff != "" {
				t.Errorf("routers asked differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoFurtherRouterIsAskedForACallerWhoLeft(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	first, second := new(memoryRouter), new(memoryRouter)
	first.setAnswer(func(*http.Request) (*http.Response, error) {
		cancel()
		return nil, context.Canceled
	})
	routers, err := NewRouters(
		newClient(t, Options{Name: "a", BaseURL: "https://router.example", HTTP: &http.Client{Transport: first}}),
		newClient(t, Options{Name: "b", BaseURL: "https://router.example", HTTP: &http.Client{Transport: second}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := routers.Quote(ctx, quoteRequest); !errors.Is(err, context.Canceled) || second.calls() != 0 {
		t.Errorf("the error is %v after %d calls of the second router, want the caller's own and no call", err, second.calls())
	}
}

func TestInstructionsComeFromTheRouterOfTheQuote(t *testing.T) {
	t.Parallel()
	routers := [2]*memoryRouter{new(memoryRouter), new(memoryRouter)}
	var clients []*Client
	for i, name := range []string{"a", "b"} {
		routers[i].setReply(reply{body: goodInstructions})
		clients = append(clients, newClient(t, Options{Name: name, BaseURL: "https://router.example", HTTP: &http.Client{Transport: routers[i]}}))
	}
	both, err := NewRouters(clients...)
	if err != nil {
		t.Fatal(err)
	}
	quote := decodedQuote(t)
	quote.Router = "b"
	if _, err := both.Instructions(t.Context(), quote, user); err != nil || routers[0].calls() != 0 || routers[1].calls() != 1 {
		t.Errorf("error %v after %d calls of the first and %d of the second router, want one of the second", err, routers[0].calls(), routers[1].calls())
	}
	quote.Router = "c"
	if _, err := both.Instructions(t.Context(), quote, user); err == nil {
		t.Error("instructions for an unknown router's quote were given")
	}
}

func TestRoutersNeedDifferentNames(t *testing.T) {
	t.Parallel()
	same := func() *Client { return newClient(t, Options{Name: "a", BaseURL: "https://router.example"}) }
	if _, err := NewRouters(same(), same()); err == nil {
		t.Error("two routers of one name were accepted")
	}
	if _, err := NewRouters(); err == nil {
		t.Error("no router was accepted")
	}
}

// A router that asks for a long wait must not delay a try that another router can serve.
func TestTheShortestWaitOfSeveralRoutersCounts(t *testing.T) {
	t.Parallel()
	limited := func(seconds string) reply {
		return reply{status: http.StatusTooManyRequests, header: map[string]string{"Retry-After": seconds}}
	}
	client := func(name string, r reply) *Client {
		memory := new(memoryRouter)
		memory.setReply(r)
		return newClient(t, Options{Name: name, BaseURL: "https://router.example", HTTP: &http.Client{Transport: memory}})
	}
	for name, test := range map[string]struct {
		routers []reply
		want    time.Duration
	}{
		"one router's own":            {[]reply{limited("60")}, time.Minute},
		"the shorter of two":          {[]reply{limited("60"), limited("2")}, 2 * time.Second},
		"none when one asks for none": {[]reply{limited("60"), {status: http.StatusInternalServerError}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var clients []*Client
			for i, r := range test.routers {
				clients = append(clients, client(string(rune('a'+i)), r))
			}
			routers, err := NewRouters(clients...)
			if err != nil {
				t.Fatal(err)
			}
			_, err = routers.Quote(t.Context(), quoteRequest)
			if got := retryAfterOf(err); got != test.want {
				t.Errorf("the wait for a quote is %s, want %s: %v", got, test.want, err)
			}
			quote := decodedQuote(t)
			quote.Router = clients[0].name
			clients[0] = client(quote.Router, test.routers[0]) // with a closed breaker
			_, err = routers.Instructions(t.Context(), quote, user)
			want := test.want
			if len(clients) > 1 {
				want = 0
			}
			if got := retryAfterOf(err); err == nil || got != want {
				t.Errorf("the wait for instructions is %s, want %s: %v", got, want, err)
			}
		})
	}
}

func TestOneRouterAloneIsAskedOnRequest(t *testing.T) {
	t.Parallel()
	down, good := new(memoryRouter), new(memoryRouter)
	down.setReply(reply{status: http.StatusInternalServerError})
	good.setReply(reply{body: goodQuote})
	routers, err := NewRouters(
		newClient(t, Options{Name: "a", BaseURL: "https://router.example", HTTP: &http.Client{Transport: down}}),
		newClient(t, Options{Name: "b", BaseURL: "https://router.example", HTTP: &http.Client{Transport: good}}))
	if err != nil {
		t.Fatal(err)
	}
	for name, works := range map[string]bool{"a": false, "b": true, "c": false} {
		request := quoteRequest
		request.Only = name
		if quote, err := routers.Quote(t.Context(), request); (err == nil) != works || works && quote.Router != name {
			t.Errorf("the quote of router %s alone is %v, error %v", name, quote, err)
		}
	}
	if down.calls() != 1 || good.calls() != 1 {
		t.Errorf("router a was asked %d times and b %d times, want each once", down.calls(), good.calls())
	}
}

// A router that fails is told apart from one that works.
func TestFailingTellsEachRouter(t *testing.T) {
	t.Parallel()
	down, good := new(memoryRouter), new(memoryRouter)
	down.setReply(reply{status: http.StatusInternalServerError})
	good.setReply(reply{body: goodQuote})
	routers, err := NewRouters(
		newClient(t, Options{Name: "a", BaseURL: "https://router.example", HTTP: &http.Client{Transport: down}}),
		newClient(t, Options{Name: "b", BaseURL: "https://router.example", HTTP: &http.Client{Transport: good}}))
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if _, err := routers.Quote(t.Context(), quoteRequest); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]bool{"a": true, "b": false}, routers.Failing()); diff != "" {
		t.Errorf("failing routers (-want +got)\n%s", diff)
	}
}

// A router that does not answer leaves the others time to.
func TestASilentRouterLeavesTimeForTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent, good := new(memoryRouter), new(memoryRouter)
		silent.setAnswer(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		good.setReply(reply{body: goodQuote})
		routers, err := NewRouters(
			newClient(t, Options{Name: "a", BaseURL: "https://router.example", HTTP: &http.Client{Transport: silent}, Timeout: time.Minute}),
			newClient(t, Options{Name: "b", BaseURL: "https://router.example", HTTP: &http.Client{Transport: good}, Timeout: time.Minute}))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		quote, err := routers.Quote(t.Context(), quoteRequest)
		if took := time.Since(start); err != nil || quote.Router != "b" || took > maxQuoting {
			t.Errorf("quote of %v after %s, error %v, want one of router b within %s", quote, took, err, maxQuoting)
		}
	})
}
