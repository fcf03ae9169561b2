package router

import (
	"context"
	"errors"
	"net/http"
	"testing"

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
