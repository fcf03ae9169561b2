package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/refusal"
)

// requireKey refuses requests without an API key. GET /health needs no key, because load
// balancers have none.
func (a *api) requireKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keyHash, known := a.knownKey(r.Header.Get("Authorization"))
		if known || r.URL.Path == contract.HealthPath {
			requestContextOf(r.Context()).client = keyHash
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		a.refuse(w, r, refusal.New(refusal.Unauthorized,
			"this relay serves clients with an API key: expected the header Authorization with the word Bearer and a key, received %s; ask the relay's operator for a key", authorizationKind(r.Header)))
	})
}

// knownKey returns the hash of a valid key. It compares with every key, so that its
// duration reveals nothing about the keys.
func (a *api) knownKey(header string) (hash [sha256.Size]byte, known bool) {
	const longest = 1024
	if len(header) > longest {
		return hash, false
	}
	scheme, key, _ := strings.Cut(header, " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(key)))
	same := 0
	for i := range a.APIKeys {
		same |= subtle.ConstantTimeCompare(a.APIKeys[i][:], sum[:])
	}
	if same == 1 && strings.EqualFold(scheme, "Bearer") {
		return sum, true
	}
	return hash, false
}

// authorizationKind describes the Authorization header of a refused request, without
// its value.
func authorizationKind(h http.Header) string {
	header := h.Get("Authorization")
	scheme, _, _ := strings.Cut(header, " ")
	switch {
	case header == "":
		return "no such header"
	case !strings.EqualFold(scheme, "Bearer"):
		return "another scheme"
	default:
		return "a key that this relay does not know"
	}
}
