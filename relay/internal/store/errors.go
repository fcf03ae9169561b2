package store

import (
	"errors"
	"io"
	"net"
	"time"
)

// retryAfter is how long a client waits before it tries again while the database is
// unreachable: a restart takes a few seconds.
const retryAfter = 2 * time.Second

// isNetworkError reports whether err is a broken or refused connection.
func isNetworkError(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}
