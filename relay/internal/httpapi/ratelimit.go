package httpapi

import (
	"net/http"
	"time"

	"github.com/go-chi/httprate"

	"github.com/relaypool/relaypool/relay/refusal"
)

// limitRate limits requests by client address. It keeps the counts only in memory.
func (a *api) limitRate() func(http.Handler) http.Handler {
	const window = time.Minute
	refuse := func(w http.ResponseWriter, r *http.Request) {
		a.refuse(w, r, refusal.New(refusal.RateLimited,
			"too many requests from your address: expected at most %d a minute; wait for Retry-After, and poll /status every 2 to 5 seconds", a.RatePerMinute).Retry(window))
	}
	byAddress := func(r *http.Request) (string, error) {
		return a.clientAddress(r), nil
	}
	return httprate.LimitBy(a.RatePerMinute, window, byAddress,
		httprate.WithLimitHandler(refuse), httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
}
