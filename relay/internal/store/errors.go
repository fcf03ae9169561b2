package store

import (
	"errors"
	"io"
	"net"
	"time"
)

// retryAfter is when a client may try again while the database is unreachable:
// a restart takes a few seconds.
const retryAfter = 2 * time.Second

// isNetwork reports whether err is a broken or refused connection.
func isNetwork(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}
