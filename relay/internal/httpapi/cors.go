package httpapi

import (
	"net/http"

	"github.com/go-chi/cors"
)

// corsMaxAge is how long a browser may remember a preflight's answer, in seconds.
const corsMaxAge = 600

func allowOrigins(origins []string) func(http.Handler) http.Handler {
	return cors.Handler(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost},
		AllowedHeaders: []string{"Authorization", "Content-Type", "Prefer", "Idempotency-Key", "If-None-Match", requestIDHeader},
		ExposedHeaders: []string{"Location", "Retry-After", "ETag", "Preference-Applied", requestIDHeader},
		MaxAge:         corsMaxAge,
	})
}
