package httpapi_test

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/httpapi"
)

const (
	walletKey, newWalletKey, plainKey = "wallet-key-0123456789", "newer-wallet-key-0123456789", "plain-key-0123456789"
)

func keysOf(name string, perMinute int, keys ...string) (all []httpapi.APIKey) {
	for _, key := range keys {
		all = append(all, httpapi.APIKey{Hash: sha256.Sum256([]byte(key)), Name: name, PerMinute: perMinute})
	}
	return all
}

// A key with a limit of its own counts by its name, from any address, and other clients by address.
func TestLimitsOfAPIKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t, &domains{}, func(o *httpapi.Options) {
		o.RatePerMinute = 1
		o.APIKeys = func() []httpapi.APIKey {
			return append(keysOf("wallet", 3, walletKey, newWalletKey), keysOf("", 0, plainKey)...)
		}
	})
	ask := func(address, key string) int {
		r := get("/")
		r.RemoteAddr = address
		r.Header.Set("Authorization", "Bearer "+key)
		resp, body := f.do(t, r)
		if resp.StatusCode == http.StatusTooManyRequests && key != plainKey && !strings.Contains(string(body), "with your API key: expected at most 3 a minute") {
			t.Errorf("the refusal is %s, want one that names the key's limit", body)
		}
		return resp.StatusCode
	}
	got := []int{
		ask("10.0.0.1:1", walletKey), ask("10.0.0.1:1", newWalletKey), ask("10.0.0.2:1", walletKey), ask("10.0.0.3:1", newWalletKey),
		ask("10.0.0.1:1", plainKey), ask("10.0.0.1:1", plainKey), ask("10.0.0.4:1", plainKey),
	}
	want := []int{200, 200, 200, 429, 200, 429, 200}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"wallet 200", "wallet 200", "wallet 200", "wallet 429"}, f.observer.clients); diff != "" {
		t.Errorf("counted clients (-want +got):\n%s", diff)
	}
	if !strings.Contains(f.log.String(), "api_key=wallet") && !strings.Contains(f.log.String(), `"api_key":"wallet"`) {
		t.Errorf("the log does not name the key's clients: %s", f.log)
	}
}

// A key that is replaced works until its line is gone, without a restart.
func TestAPIKeysChangeWhileTheRelayRuns(t *testing.T) {
	t.Parallel()
	var keys atomic.Pointer[[]httpapi.APIKey]
	set := func(all []httpapi.APIKey) { keys.Store(&all) }
	set(keysOf("wallet", 0, walletKey))
	f := newFixture(t, &domains{}, func(o *httpapi.Options) { o.APIKeys = func() []httpapi.APIKey { return *keys.Load() } })
	status := func(key string) int {
		r := get("/")
		r.Header.Set("Authorization", "Bearer "+key)
		resp, _ := f.do(t, r)
		return resp.StatusCode
	}
	var got []int
	for _, all := range [][]httpapi.APIKey{keysOf("wallet", 0, walletKey), keysOf("wallet", 0, walletKey, newWalletKey), keysOf("wallet", 0, newWalletKey)} {
		set(all)
		got = append(got, status(walletKey), status(newWalletKey))
	}
	if diff := cmp.Diff([]int{200, 401, 200, 200, 401, 200}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}
