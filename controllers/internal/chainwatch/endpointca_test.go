package chainwatch

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

func inPEM(certificate []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

// listenTLS returns the URL of one of the chain's endpoints with TLS, and the only authority of its
// certificate.
func listenTLS(t *testing.T, c *localnet.Chain, name string) (address, ca string) {
	t.Helper()
	behind, err := url.Parse(listen(t, c, name))
	if err != nil {
		t.Fatal(err)
	}
	behind.Path = ""
	server := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(behind))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse the certificate are no news
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL + "/" + canary, inPEM(server.Certificate().Raw)
}

// authority returns the certificate of an authority that issued nothing.
func authority(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	content, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return inPEM(content)
}

func TestEndpointsWithAuthorities(t *testing.T) {
	t.Parallel()
	c, target := chain(t, localnet.Options{Initialised: true})
	address, right := listenTLS(t, c, "default")
	wrong := authority(t)
	w, _ := start(t, Options{})
	tests := map[string]struct {
		ca   func(context.Context) (string, error)
		want string // the cause; empty if the endpoint is read
	}{
		"the system's authorities":      {nil, "TLS certificate not accepted"},
		"the right authority":           {func(context.Context) (string, error) { return right, nil }, ""},
		"the right authority among two": {func(context.Context) (string, error) { return wrong + right, nil }, ""},
		"the wrong authority":           {func(context.Context) (string, error) { return wrong, nil }, "TLS certificate not accepted"},
		"no certificate":                {func(context.Context) (string, error) { return canary, nil }, "parse the authorities of the endpoint's certificate: file of 12 bytes has no certificate"},
		"a missing Secret": {func(context.Context) (string, error) { return "", errors.New("Secret rpc-ca does not exist") },
			"endpoint private: Secret rpc-ca does not exist"},
	}
	i := 0
	for name, test := range tests {
		key := poolKey(i)
		i++
		t.Run(name, func(t *testing.T) {
			e := endpoint("private", address)
			e.CA = test.ca
			w.Set(key, Query{Target: target, Interval: 20 * time.Millisecond, Endpoints: []Endpoint{e}})
			until(t, "the endpoint is read, or the reason shows why not: "+test.want, func() bool {
				r, _ := w.Reading(key)
				state, _, message := r.PoolState()
				if strings.Contains(message, canary) || strings.Contains(message, "127.0.0.1") {
					t.Fatalf("the message contains the URL or the value: %q", message)
				}
				if test.want == "" {
					return state == poolcheck.OK
				}
				return state == poolcheck.Unknown && strings.Contains(message, test.want)
			})
		})
	}
}

// Every check trusts the authorities that the Secret has then. No connection outlives them, and what
// was read while others were trusted is read again.
func TestChangedAuthoritiesCountAtTheNextCheck(t *testing.T) {
	t.Parallel()
	c, target := chain(t, localnet.Options{Initialised: true})
	address, right := listenTLS(t, c, "default")
	var ca atomic.Value
	ca.Store(right)
	w, _ := start(t, Options{})
	e := endpoint("private", address)
	e.CA = func(context.Context) (string, error) { return ca.Load().(string), nil }
	w.Set(poolKey(0), Query{Target: target, Interval: 20 * time.Millisecond, Endpoints: []Endpoint{e}})
	reads := func() bool {
		r, _ := w.Reading(poolKey(0))
		return !r.At.IsZero() && r.UnavailableSince.IsZero()
	}
	until(t, "the chain is read", reads)
	ca.Store(authority(t))
	until(t, "the endpoint's certificate is refused", func() bool { return !reads() })
	ca.Store(right + authority(t))
	until(t, "the chain is read again", reads)
	if n := c.Stats()["getGenesisHash"]; n < 2 {
		t.Errorf("got %d calls for the genesis hash, want one for each set of authorities", n)
	}
}
