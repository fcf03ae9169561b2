package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// preference is how long a submission's answer may wait for the outcome.
type preference struct {
	wait time.Duration
	// applied is the Preference-Applied header; empty when the client has no
	// preference.
	applied string
}

// parsePrefer parses a Prefer header (RFC 7240). If a preference is repeated, the first one
// counts. Unknown and malformed preferences are ignored, as the RFC demands, and so is
// an overlong header.
func (a *api) parsePrefer(header *string) preference {
	const longest = 256
	if header == nil || len(*header) > longest {
		return preference{wait: a.WaitDefault}
	}
	var async, hasWait bool
	var wait time.Duration
	for _, part := range strings.Split(*header, ",") {
		// These preferences have no parameters after ';'.
		token, _, _ := strings.Cut(part, ";")
		name, value, _ := strings.Cut(token, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			async = true
		case "wait":
			seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			if err == nil && !hasWait {
				hasWait, wait = true, time.Duration(seconds)*time.Second
			}
		}
	}
	p := preference{wait: a.WaitDefault}
	var applied []string
	if async {
		p.wait = 0
		applied = append(applied, "respond-async")
	}
	if hasWait {
		p.wait = min(wait, a.WaitMax)
		applied = append(applied, "wait="+strconv.FormatInt(int64(p.wait/time.Second), 10))
	}
	p.applied = strings.Join(applied, ", ")
	return p
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
