package router

import (
	"net/http"
	"strconv"
	"time"
)

// retryAfter parses a Retry-After header, in seconds or a date; 0 when it is neither, or
// past.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
