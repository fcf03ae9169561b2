package httpapi

import (
	"net/http"
	"net/url"

	"github.com/relaypool/relaypool/relay/refusal"
)

// checkQuery refuses a query string that does not parse, because the generated server
// would drop the broken part. It also refuses a mint that the served pool, which is that of the
// profile's first mint, does not have; no mint means the first.
func (a *api) checkQuery(r *http.Request, mint *string) error {
	const longest = 1024
	if n := len(r.URL.RawQuery); n > longest {
		return refusal.New(refusal.InvalidRequest, "the query string has %d characters: expected at most %d", n, longest)
	}
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return refusal.New(refusal.InvalidRequest, "the query string is malformed: expected name=value pairs joined by &, percent-encoded")
	}
	if mint == nil || *mint == "" {
		return nil
	}
	for _, m := range a.Info.Profile.Mints {
		if len(*mint) > maxAddressLength {
			break
		}
		if m.Address.String() == *mint && a.pools[m.Field].Address == a.pools[a.Info.Profile.Mints[0].Field].Address {
			return nil
		}
	}
	return refusal.New(refusal.UnknownMint, "mint is not one of this pool's: expected an address that GET / lists under pool.mints, or none; received %d characters", len(*mint))
}
