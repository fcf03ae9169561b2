package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/internal/swap"
)

// The canaries, one in each part of a router's configuration.
const (
	canaryUser  = "c4n4ryuser"
	canaryPass  = "c4n4rypass"
	canaryPath  = "c4n4rypath"
	canaryQuery = "c4n4ryquery"
	canaryKey   = "c4n4rykey"
)

func withCanaries(t *testing.T, target string) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path, u.RawQuery = url.UserPassword(canaryUser, canaryPass), "/"+canaryPath+"/v1", "key="+canaryQuery
	return u.String()
}

// TestNoSecretIsShown: every part of the router's URL holds credentials, and the answers
// echo them and the request. No error, log line, metric or formatted value contains any of
// them.
func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	echo := fmt.Sprintf(`{"error":"no %s for %s of %s with 100000000 at %s","errorCode":"%s %s"}`, canaryKey, user, wsol, canaryPath, canaryQuery, usdc)
	tests := map[string]struct {
		url   string // empty for the server's
		reply reply
		calls int // of each kind, enough to open the breaker
	}{
		"no listener":                  {url: "http://" + closedAddress(t), calls: 6},
		"a name that does not resolve": {url: "http://router.invalid", calls: 1},
		"HTTP 403":                     {reply: reply{status: 403, body: echo}, calls: 6},
		"HTTP 500":                     {reply: reply{status: 500, body: echo}, calls: 6},
		"HTTP 429":                     {reply: reply{status: 429, body: echo, header: map[string]string{"Retry-After": canaryPath}}, calls: 6},
		"a redirect to itself":         {reply: reply{status: 307, header: map[string]string{"Location": "/?" + canaryQuery}}, calls: 1},
		"a refusal":                    {reply: reply{status: 400, body: echo}, calls: 6},
		"a refusal with 200":           {reply: reply{body: echo}, calls: 1},
		"a page":                       {reply: reply{body: "<html>" + echo}, calls: 6},
		"an answer to another request": {reply: reply{body: strings.NewReplacer(usdc.String(), user.String()).Replace(goodQuote)}, calls: 6},
		"TLS to a server without it":   {url: strings.Replace(newServer(t, reply{}).URL, "http:", "https:", 1), calls: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := test.url
			s := newServer(t, test.reply)
			if target == "" {
				target = s.URL
			}
			log, observer := &lockedBuffer{}, &recorder{}
			o := Options{
				BaseURL: withCanaries(t, target), APIKey: canaryKey, Now: time.Now, Observer: observer,
				Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}
			c := newClient(t, o)
			var text strings.Builder
			show := func(err error) {
				if err == nil {
					t.Fatal("the call returned no error")
				}
				for ; err != nil; err = errors.Unwrap(err) {
					fmt.Fprintf(&text, "%v %+v %#v %q\n", err, err, err, err)
				}
			}
			for range test.calls {
				_, err := c.Quote(t.Context(), quoteRequest)
				show(err)
				_, err = c.Instructions(t.Context(), &swap.Quote{Raw: json.RawMessage(goodQuote)}, user)
				show(err)
			}
			if test.url == "" && !strings.Contains(s.requests[0].URL.Path+s.requests[0].Header.Get("X-Api-Key"), canaryPath+"/v1/quote"+canaryKey) {
				t.Fatal("the requests do not contain the canaries")
			}
			for _, v := range []any{c, *c, o, &o, []Options{o}} {
				fmt.Fprintf(&text, "%v %+v %#v %s %x\n", v, v, v, v, v)
				o.Log.Info("Printed", "value", v)
				slog.New(slog.NewTextHandler(&text, nil)).Info("Printed", "value", v)
			}
			all := text.String() + log.String() + strings.Join(observer.all(), "\n")
			for _, secret := range []string{
				canaryUser, canaryPass, canaryPath, canaryQuery, canaryKey, fmt.Sprintf("%x", canaryKey),
				user.String(), wsol.String(), usdc.String(), "100000000",
			} {
				if i := strings.Index(all, secret); i >= 0 {
					t.Errorf("%q is shown: …%s…", secret, all[max(0, i-80):i+len(secret)])
				}
			}
		})
	}
}
