package httpapi

import (
	"context"
	"net/http"
)

const requestIDHeader = "X-Request-Id"

// identify gives the request an id and sets the headers that every answer has. A
// client's own id is kept only when it is short and safe to log.
func (a *api) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &requestContext{id: r.Header.Get(requestIDHeader)}
		if !isValidID(x.id) {
			x.id = a.NewID()
		}
		h := w.Header()
		h.Set(requestIDHeader, x.id)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestContextKey{}, x)))
	})
}

func isValidID(id string) bool {
	const longest = 64
	if id == "" || len(id) > longest {
		return false
	}
	for _, c := range []byte(id) {
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alphanumeric && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
