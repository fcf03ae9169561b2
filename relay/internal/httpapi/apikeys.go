package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/refusal"
)

// APIKey is a key that clients have to present.
type APIKey struct {
	// Hash is the SHA-256 hash of the key.
	Hash [sha256.Size]byte
	// Name is the name of the clients that have the key, for logs and metrics. Several keys may have
	// one name, so that a key can be replaced; they share a limit. Empty for a key without a name.
	Name string
	// PerMinute is how many requests all clients of that name may make in a minute, in place of the
	// limit by address; 0 for that limit.
	PerMinute int
}

// client identifies the key's clients, so that their submissions are kept apart from those of others;
// zero for a client without a key.
func (k *APIKey) client() [sha256.Size]byte {
	switch {
	case k == nil:
		return [sha256.Size]byte{}
	case k.Name == "":
		return k.Hash
	}
	return sha256.Sum256([]byte("API key named " + k.Name)) // remains the same when the key is replaced
}

// identifyKey finds out which API key the client presents.
func (a *api) identifyKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key, known := a.knownKey(r.Header.Get("Authorization")); known {
			requestContextOf(r.Context()).key = &key
		}
		next.ServeHTTP(w, r)
	})
}

// requireKey refuses requests without an API key. GET /health needs no key, because load
// balancers have none.
func (a *api) requireKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requestContextOf(r.Context()).key != nil || r.URL.Path == contract.HealthPath {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		a.refuse(w, r, refusal.New(refusal.Unauthorized,
			"this relay serves clients with an API key: expected the header Authorization with the word Bearer and a key, received %s; ask the relay's operator for a key", authorizationKind(r.Header)))
	})
}

// knownKey returns the valid key in the header. It compares with every key, so that its duration
// reveals nothing about the keys.
func (a *api) knownKey(header string) (found APIKey, known bool) {
	const longest = 1024
	if len(header) > longest {
		return found, false
	}
	scheme, key, _ := strings.Cut(header, " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(key)))
	for _, k := range a.APIKeys() {
		if subtle.ConstantTimeCompare(k.Hash[:], sum[:]) == 1 {
			found, known = k, true
		}
	}
	if known && strings.EqualFold(scheme, "Bearer") {
		return found, true
	}
	return APIKey{}, false
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
