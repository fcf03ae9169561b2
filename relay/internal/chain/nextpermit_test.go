package chain

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// A read that fails says when one of the endpoints may be asked again, so that its caller neither
// asks too early nor waits too long.
func TestFailedReadSaysWhenToAskAgain(t *testing.T) {
	t.Parallel()
	limited := reply{status: 429}
	pause := func(seconds string) reply {
		return reply{status: 429, header: http.Header{"Retry-After": {seconds}}}
	}
	for name, tt := range map[string]struct {
		a, b     reply
		reads    int // the error of the last one is checked
		want     time.Duration
		wantKind string
	}{
		"no endpoint asks for a pause":             {limited, limited, 1, 0, onchain.KindRateLimited},
		"one of two asks for a pause":              {pause("20"), limited, 1, 0, onchain.KindRateLimited},
		"both ask for a pause":                     {pause("20"), pause("8"), 1, 7 * time.Second, onchain.KindBreakerOpen}, // the read waited for a second
		"both ask for a pause, a second later":     {pause("20"), pause("8"), 2, 6 * time.Second, onchain.KindBreakerOpen},
		"both ask for more than the longest pause": {pause("3600"), pause("3600"), 1, maxPause - time.Second, onchain.KindBreakerOpen},
		"an endpoint's URL is wrong":               {reply{status: 403}, limited, 1, 0, onchain.KindRateLimited},
		"the breakers open after three failures":   {serverError, serverError, 3, 1150 * time.Millisecond, onchain.KindServerError}, // after a failed probe
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("a", "b")
				n["a"].fail(tt.a)
				n["b"].fail(tt.b)
				e, _ := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
				var err error
				for range tt.reads {
					err = balance(t, e)
				}
				checkError(t, err, tt.wantKind, 0, nil)
				var u *onchain.Unavailable
				if !errors.As(err, &u) || u.RetryAfter.Round(100*time.Millisecond) != tt.want.Round(100*time.Millisecond) {
					t.Errorf("error %v asks for a pause of %s, want %s", err, u.RetryAfter, tt.want)
				}
			})
		})
	}
}
