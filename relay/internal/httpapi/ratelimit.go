package httpapi

import (
	"net/http"
	"time"

	"github.com/go-chi/httprate"

	"github.com/relaypool/relaypool/relay/refusal"
)

// limitRate limits requests by the name of the client's API key, if the key has a limit of its own,
// or else by the client's address.
func (a *api) limitRate() func(http.Handler) http.Handler {
	const window = time.Minute
	options := []httprate.Option{httprate.WithResponseHeaders(httprate.ResponseHeaders{})}
	if a.RequestCounter != nil {
		options = append(options, httprate.WithLimitCounter(a.RequestCounter))
	}
	limiter := httprate.NewRateLimiter(max(a.RatePerMinute, 1), window, options...)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			client, from, limit := "address "+a.clientAddress(r), "from your address", a.RatePerMinute
			if key := requestContextOf(r.Context()).key; key != nil && key.PerMinute > 0 {
				client, from, limit = "key "+key.Name, "with your API key", key.PerMinute
			}
			if limit > 0 && limiter.OnLimit(w, r.WithContext(httprate.WithRequestLimit(r.Context(), limit)), client) {
				a.refuse(w, r, refusal.New(refusal.RateLimited,
					"too many requests %s: expected at most %d a minute; wait for Retry-After, and poll /status every 2 to 5 seconds", from, limit).Retry(window))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
