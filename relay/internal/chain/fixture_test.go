package chain

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/freeport"
	"github.com/relaypool/relaypool/relay/onchain"
)

var (
	keyA, keyB       = solana.PublicKey{1}, solana.PublicKey{2}
	sigA, sigB, sigC = solana.Signature{1}, solana.Signature{2}, solana.Signature{3}
	hashA            = solana.Hash{3}
	payerKey         = solana.PublicKey{10}
	router           = solana.PublicKey{21}
	treeKey          = solana.PublicKey{30}
	table            = solana.PublicKey{40}
)

// indexIn returns the index of an address among a transaction's own keys.
func indexIn(t *testing.T, raw []byte, key solana.PublicKey) int {
	t.Helper()
	tx, err := solana.TransactionFromBytes(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range tx.Message.AccountKeys {
		if k == key {
			return i
		}
	}
	t.Fatalf("%s is not among the transaction's own keys", key)
	return 0
}

func checkError(t *testing.T, err error, kind string, code int, other error) {
	t.Helper()
	if got := errors.Is(err, onchain.ErrUnavailable); got != (kind != "") {
		t.Errorf("error %v is unavailable: %v, want %v", err, got, kind != "")
	}
	var u *onchain.Unavailable
	if kind != "" && (!errors.As(err, &u) || u.Kind != kind) {
		t.Errorf("error is %v, want an unavailable error of kind %s", err, kind)
	}
	var r *onchain.RPCError
	if code != 0 && (!errors.As(err, &r) || r.Code != code) {
		t.Errorf("error is %v, want RPC error %d", err, code)
	}
	if other != nil && !errors.Is(err, other) {
		t.Errorf("error is %v, want %v", err, other)
	}
}

// The canaries stand for the parts of a URL in which some provider puts a secret.
const (
	canaryUser  = "canary-user"
	canaryPass  = "canary-pass"
	canaryPath  = "canary-path-0123456789"
	canaryQuery = "canary-query"
)

func withCanaries(t *testing.T, base string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(canaryUser, canaryPass)
	u.Path = "/v2/" + canaryPath
	u.RawQuery = "api-key=" + canaryQuery
	return u.String()
}

func checkCanaries(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "canary") {
		t.Errorf("%q shows a part of the URL", text)
	}
}

// closedAddress returns an address without a listener.
func closedAddress(t *testing.T) string {
	t.Helper()
	addresses, err := freeport.Find(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return addresses[0]
}

// startServer returns the URL of an endpoint that gives the same answer to every call.
func startServer(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "websocket" {
			w.WriteHeader(http.StatusNotFound)
		} else {
			w.WriteHeader(status)
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}
