package rpc

import (
	"net/http"
	"strconv"
	"time"
)

// retryAfter reads the Retry-After header, which is a number of seconds or a date. It returns 0
// when the header is neither, or when the date has passed.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
