package app

import (
	"bytes"
	cryptorand "crypto/rand"
	"sync"
)

// randomness is the operating system's random source.
var randomness = cryptorand.Reader

// lockedBuffer is a log that a test can read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
