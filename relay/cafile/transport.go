package cafile

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// interval is the least time between two readings of a file: a busy client must not read it for each
// request.
const interval = 5 * time.Second

// Options configure a Transport.
type Options struct {
	// Path is the file of the authorities. Required.
	Path string
	// Now is the clock. Required.
	Now func() time.Time
	// Changed receives the error when the file can no longer be read, once, and nil when it can be
	// read again, or when its authorities changed. It must not block. Nil for none.
	Changed func(error)
}

// Transport is an http.RoundTripper that trusts exactly the authorities in a file, also of a proxy
// that is called over TLS. If the file changes, later requests trust its new authorities; if it
// cannot be read then, they trust the last ones. Safe for concurrent use.
type Transport struct {
	base *http.Transport
	o    Options

	mu      sync.Mutex
	current *http.Transport
	content []byte // the content of the file that current trusts
	readAt  time.Time
	failed  bool // the last reading failed
}

// NewTransport makes a Transport whose connections are as those of base, which it does not use
// itself. It fails if the file cannot be read.
func NewTransport(base *http.Transport, o Options) (*Transport, error) {
	switch {
	case base == nil || o.Now == nil:
		return nil, errors.New("transport with a ca file needs a base and a clock")
	case base.DialTLSContext != nil || base.DialTLS != nil: //nolint:staticcheck // a deprecated field has an effect, too
		return nil, errors.New("base of a transport with a ca file makes its own TLS connections, which would not know the file: leave DialTLS and DialTLSContext out")
	case base.TLSClientConfig != nil && base.TLSClientConfig.InsecureSkipVerify:
		return nil, errors.New("base of a transport with a ca file accepts any certificate: leave InsecureSkipVerify out")
	}
	t := &Transport{base: base.Clone(), o: o}
	content, err := read(o.Path)
	if err == nil {
		err = t.trust(content)
	}
	if err != nil {
		return nil, fmt.Errorf("read ca file: %w", err)
	}
	t.readAt = o.Now()
	return t, nil
}

// Trust makes a client trust exactly the authorities in a file. The client's Transport has to be
// an *http.Transport.
func Trust(client *http.Client, o Options) error {
	base, ok := client.Transport.(*http.Transport)
	if !ok {
		return fmt.Errorf("client has a transport of the type %T: expected an *http.Transport", client.Transport)
	}
	transport, err := NewTransport(base, o)
	if err != nil {
		return err
	}
	client.Transport = transport
	return nil
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.transport().RoundTrip(r)
}

// CloseIdleConnections closes the connections that no request uses. http.Client calls it.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current.CloseIdleConnections()
}

// transport returns the transport that trusts what the file contains. It reads the file if the last
// reading was long enough ago.
func (t *Transport) transport() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.o.Now()
	if age := now.Sub(t.readAt); age >= 0 && age < interval {
		return t.current
	}
	t.readAt = now
	content, err := read(t.o.Path)
	changed := err == nil && !bytes.Equal(content, t.content)
	if changed {
		err = t.trust(content)
	}
	if report := changed && err == nil || (err != nil) != t.failed; report && t.o.Changed != nil {
		if err != nil {
			err = fmt.Errorf("read ca file: %w", err)
		}
		t.o.Changed(err)
	}
	t.failed = err != nil
	return t.current
}

// trust replaces the transport by one that trusts the authorities in content. The old one's
// connections end with their requests.
func (t *Transport) trust(content []byte) error {
	roots, err := Parse(content)
	if err != nil {
		return err
	}
	next := t.base.Clone()
	if next.TLSClientConfig == nil {
		next.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	next.TLSClientConfig.RootCAs = roots
	// A session of a connection that another authority vouched for must not be resumed.
	next.TLSClientConfig.ClientSessionCache = nil
	// Without this, net/http would not use HTTP/2 with a TLS configuration of its user's. It has
	// no effect if the base has HTTP/2 off.
	next.ForceAttemptHTTP2 = true
	if t.current != nil {
		t.current.CloseIdleConnections()
	}
	t.current, t.content = next, content
	return nil
}
