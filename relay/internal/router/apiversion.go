package router

import (
	"net/http"
	"net/url"
	"path"

	"github.com/relaypool/relaypool/relay/internal/swap"
)

// speaksVersion2 reports whether the router at the URL speaks the API's v2. Otherwise it speaks v1.
func speaksVersion2(base *url.URL) bool { return path.Base(base.Path) == "v2" }

// quoteCall returns the call that asks for a quote. It adds the parameters of the API's version to
// the query.
func (c *Client) quoteCall(q swap.QuoteRequest, query url.Values) call[*swap.Quote] {
	get := call[*swap.Quote]{name: CallQuote, method: http.MethodGet, path: "quote", query: query}
	if c.version2 {
		get.name, get.path = CallBuild, "build"
		query.Set("taker", q.User.String())
		return get
	}
	query.Set("restrictIntermediateTokens", "true")
	if q.DirectOnly {
		query.Set("onlyDirectRoutes", "true")
	}
	return get
}
