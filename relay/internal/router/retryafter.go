package router

import (
	"net/http"
	"strconv"
	"time"
)

// retryAfter returns the wait that a Retry-After header asks for, in seconds or by a date. It is
// 0 for a date in the past and for any other text.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
