package httpapi

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/relaypool/relaypool/relay/refusal"
)

func (a *api) routeNotFound(w http.ResponseWriter, r *http.Request) {
	a.refuse(w, r, refusal.New(refusal.RouteNotFound, "this path is not a route of the relay: GET / lists the routes"))
}

// methodNotAllowed answers with the methods of the path. The router also calls it for
// a method that the router does not know, on any path.
func (a *api) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if r.URL.RawPath != "" {
		path = r.URL.RawPath
	}
	routes := chi.RouteContext(r.Context()).Routes
	var methods []string
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if routes.Match(chi.NewRouteContext(), method, path) {
			methods = append(methods, method)
			if method == http.MethodGet {
				methods = append(methods, http.MethodHead)
			}
		}
	}
	if len(methods) == 0 {
		a.routeNotFound(w, r)
		return
	}
	list := strings.Join(methods, ", ")
	w.Header().Set("Allow", list)
	a.refuse(w, r, refusal.New(refusal.MethodNotAllowed, "this route does not have that method: expected %s", list))
}
