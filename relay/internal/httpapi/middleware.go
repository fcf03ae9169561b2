package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/cors"
	"github.com/go-chi/httprate"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	requestIDHeader = "X-Request-Id"
	// unmatched is the route label of an unknown path, which is text of the client and
	// must not be logged.
	unmatched = "unmatched"
	// statusClientClosed is the status in log and metrics when the client left
	// before the answer; it is never sent.
	statusClientClosed = 499
	// corsMaxAge is how long a browser may remember a preflight's answer, in seconds.
	corsMaxAge = 600
)

// exchange is what the handlers of one request share.
type exchange struct {
	id string
	// code is the refusal that was sent, if any.
	code refusal.Code
	// client is the hash of the valid API key that the client sent; zero without one.
	client [sha256.Size]byte
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

// identify gives the exchange an id and sets the headers that every answer has. A
// client's own id is kept only when it is short and safe to log.
func (a *api) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{id: r.Header.Get(requestIDHeader)}
		if !isValidID(x.id) {
			x.id = a.NewID()
		}
		h := w.Header()
		h.Set(requestIDHeader, x.id)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
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

// observe counts the exchange and logs it: POST requests and server errors at Info,
// others at Debug. It logs neither the path nor the address.
func (a *api) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := a.Now()
		recorder := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		next.ServeHTTP(recorder, r)
		took, method, route := a.Now().Sub(began), methodLabel(r.Method), routeLabel(r)
		status := recorder.Status()
		if status == 0 {
			status = http.StatusOK
		}
		a.Observer.Request(method, route, status, took)

		level := slog.LevelDebug
		if r.Method == http.MethodPost || status >= http.StatusInternalServerError {
			level = slog.LevelInfo
		}
		x := exchangeOf(r.Context())
		attrs := []slog.Attr{
			slog.String("request_id", x.id), slog.String("method", method), slog.String("route", route),
			slog.Int("status", status), slog.Duration("duration", took),
		}
		if x.code != "" {
			attrs = append(attrs, slog.String("code", string(x.code)))
		}
		a.Log.LogAttrs(r.Context(), level, "request answered", attrs...)
	})
}

// methodLabel keeps made-up methods out of logs and labels.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return method
	default:
		return "other"
	}
}

func routeLabel(r *http.Request) string {
	if rctx := chi.RouteContext(r.Context()); rctx != nil && len(rctx.RoutePatterns) > 0 {
		return rctx.RoutePattern()
	}
	return unmatched
}

// recoverPanic answers a panic as an internal error. It logs neither the
// panic's value nor the arguments on its stack: they may contain parts of the
// request.
func (a *api) recoverPanic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				a.panicked(w, r, v)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func (a *api) panicked(w http.ResponseWriter, r *http.Request, v any) {
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	a.Log.ErrorContext(r.Context(), "request panicked",
		"request_id", exchangeOf(r.Context()).id, "panic", describePanic(v), "at", callers())
	a.internal(w, r)
}

// describePanic returns a runtime error's text, which contains only lengths and types.
// For any other value it returns only the type.
func describePanic(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("value of type %T", v)
}

// callers lists the functions on the stack below the one that panicked, as
// file:line, without arguments.
func callers() []string {
	const skip, most = 4, 24
	pcs := make([]uintptr, most)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(skip, pcs)])
	var at []string
	for {
		f, more := frames.Next()
		at = append(at, fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
		if !more {
			return at
		}
	}
}

func allowOrigins(origins []string) func(http.Handler) http.Handler {
	return cors.Handler(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost},
		AllowedHeaders: []string{"Authorization", "Content-Type", "Prefer", "Idempotency-Key", "If-None-Match", requestIDHeader},
		ExposedHeaders: []string{"Location", "Retry-After", "ETag", "Preference-Applied", requestIDHeader},
		MaxAge:         corsMaxAge,
	})
}

// limitRate limits requests by client address. It counts in memory alone.
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

// requireKey refuses requests without an API key. GET /health is for load
// balancers, which have none.
func (a *api) requireKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, known := a.knownKey(r.Header.Get("Authorization"))
		if known || r.URL.Path == contract.HealthPath {
			exchangeOf(r.Context()).client = key
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
		return "none"
	case !strings.EqualFold(scheme, "Bearer"):
		return "another scheme"
	default:
		return "a key that it does not know"
	}
}

// clientAddress is the address by which a client is counted. For IPv6 it is the /64
// network, because one client has all its addresses.
func (a *api) clientAddress(r *http.Request) string {
	return httprate.CanonicalizeIP(clientIP(r, a.ClientIPHeader))
}

// clientIP is the last address in the header, which the nearest proxy wrote: the
// client itself may have sent the others. Without the header it is the peer's
// address.
func clientIP(r *http.Request, header string) string {
	if header != "" {
		if lines := r.Header.Values(header); len(lines) > 0 {
			line := lines[len(lines)-1]
			last := strings.TrimSpace(line[strings.LastIndexByte(line, ',')+1:])
			const longest = 64 // more than an IPv6 address with its zone
			if ip, err := netip.ParseAddr(last[:min(len(last), longest)]); err == nil {
				return ip.Unmap().WithZone("").String()
			}
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// joinPrefer joins several Prefer headers into one, which means the same (RFC 7240
// §2): the generated server would refuse several.
func joinPrefer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lines := r.Header.Values("Prefer"); len(lines) > 1 {
			r.Header.Set("Prefer", strings.Join(lines, ", "))
		}
		next.ServeHTTP(w, r)
	})
}
