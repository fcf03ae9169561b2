package signer

import (
	"context"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// newLogin makes a VaultTransit that logs in by Kubernetes, and the clock of its leases.
func (v *vaultServer) newLogin(t *testing.T) (transit *VaultTransit, clock *time.Time) {
	t.Helper()
	transit = v.newTransit(t, func(o *VaultTransitOptions) {
		o.TokenFile, o.KubernetesRole = "", "relay"
		o.JWTFile = replaceFile(t, filepath.Join(t.TempDir(), "jwt"), []byte(vaultJWT))
	})
	clock = new(time.Time)
	*clock = time.Now()
	login := newVaultLogin(transit.client, transit.o)
	login.now = func() time.Time { return *clock }
	transit.token = login.current
	return transit, clock
}

func TestVaultLogin(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		// between happens between two calls.
		between func(t *testing.T, v *vaultServer, transit *VaultTransit, clock *time.Time)
		want    string // in the second call's error; empty for none
		logins  int
	}{
		"one login serves calls until a fifth of the lease is left": {func(_ *testing.T, _ *vaultServer, _ *VaultTransit, clock *time.Time) {
			*clock = clock.Add(47 * time.Minute)
		}, "", 1},
		"the login is repeated before the lease ends": {func(_ *testing.T, _ *vaultServer, _ *VaultTransit, clock *time.Time) {
			*clock = clock.Add(49 * time.Minute)
		}, "", 2},
		"the login is repeated after the lease": {func(_ *testing.T, v *vaultServer, _ *VaultTransit, clock *time.Time) {
			*clock = clock.Add(2 * time.Hour)
			clear(v.tokens)
		}, "", 2},
		"a token that is refused is replaced": {func(_ *testing.T, v *vaultServer, _ *VaultTransit, _ *time.Time) { clear(v.tokens) }, "", 2},
		"a policy that is missing is told after one more login": {func(_ *testing.T, v *vaultServer, _ *VaultTransit, _ *time.Time) {
			vaultFails(http.StatusForbidden, "permission denied")(v)
		}, `update on "transit/sign/payer"`, 2},
		"the old token serves while logins fail": {func(_ *testing.T, v *vaultServer, _ *VaultTransit, clock *time.Time) {
			*clock = clock.Add(50 * time.Minute)
			v.loginAnswer = func(w http.ResponseWriter, _ *http.Request) {
				refuseAsVault(w, http.StatusInternalServerError, "no Kubernetes")
			}
		}, "", 2},
		"the old token serves while a login hangs": {func(_ *testing.T, v *vaultServer, _ *VaultTransit, clock *time.Time) {
			*clock = clock.Add(50 * time.Minute)
			v.loginAnswer = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		}, "", 2},
		"the old token does not serve after its lease": {func(_ *testing.T, v *vaultServer, _ *VaultTransit, clock *time.Time) {
			*clock = clock.Add(time.Hour)
			v.loginAnswer = func(w http.ResponseWriter, _ *http.Request) {
				refuseAsVault(w, http.StatusInternalServerError, "no Kubernetes")
			}
		}, "log in to vault: vault answered with a failure (500: no Kubernetes)", 2},
		"the service account's token is read at each login": {func(t *testing.T, v *vaultServer, transit *VaultTransit, clock *time.Time) {
			*clock = clock.Add(time.Hour)
			v.jwt = vaultJWT + "-2"
			replaceFile(t, transit.o.JWTFile, []byte(vaultJWT+"-2"))
		}, "", 2},
		"a service account that is not bound": {func(_ *testing.T, v *vaultServer, _ *VaultTransit, _ *time.Time) {
			clear(v.tokens)
			v.jwt = "another"
		}, `vault refused the login with the role "relay" at "auth/kubernetes" (403: permission denied): expected the auth method kubernetes there, with a role that is bound`, 2},
		"a failure that repeats the service account's token": {func(_ *testing.T, v *vaultServer, _ *VaultTransit, _ *time.Time) {
			clear(v.tokens)
			v.loginAnswer = func(w http.ResponseWriter, _ *http.Request) { refuseAsVault(w, http.StatusBadRequest, "jwt "+vaultJWT) }
		}, "(400: jwt [redacted])", 2},
		"a sealed server": {func(_ *testing.T, v *vaultServer, _ *VaultTransit, _ *time.Time) {
			clear(v.tokens)
			v.loginAnswer = func(w http.ResponseWriter, _ *http.Request) {
				refuseAsVault(w, http.StatusServiceUnavailable, "Vault is sealed")
			}
		}, "log in to vault: vault does not serve (503: Vault is sealed): unseal it", 2},
		"an auth method that is missing": {func(_ *testing.T, v *vaultServer, _ *VaultTransit, _ *time.Time) {
			clear(v.tokens)
			v.loginAnswer = func(w http.ResponseWriter, _ *http.Request) {
				refuseAsVault(w, http.StatusNotFound, "no handler for route")
			}
		}, `vault has no auth method at "auth/kubernetes" (404: no handler for route): enable kubernetes there`, 2},
		"a login that wants a second factor": {func(_ *testing.T, v *vaultServer, _ *VaultTransit, _ *time.Time) {
			clear(v.tokens)
			v.loginAnswer = func(w http.ResponseWriter, _ *http.Request) {
				answerAsVault(w, "auth", map[string]any{"client_token": "", "mfa_requirement": map[string]any{"mfa_request_id": "a"}})
			}
		}, `vault's login at "auth/kubernetes/login" gave no token`, 2},
		"a service account's token that is missing": {func(_ *testing.T, v *vaultServer, transit *VaultTransit, _ *time.Time) {
			clear(v.tokens)
			transit.o.JWTFile += ".gone"
			transit.token = newVaultLogin(transit.client, transit.o).current
		}, "read the token: open ", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newVaultServer(t, vaultSeed(1))
			transit, clock := server.newLogin(t)
			if _, err := transit.Sign(t.Context(), vaultMessage); err != nil {
				t.Fatal(err)
			}
			server.set(func(v *vaultServer) { test.between(t, v, transit, clock) })
			_, err := transit.Sign(t.Context(), vaultMessage)
			checkVaultError(t, "the second call", err, test.want)
			if server.logins != test.logins {
				t.Errorf("got %d logins, want %d", server.logins, test.logins)
			}
		})
	}
}

// Each login leaves a token behind in Vault, so a policy that is missing must not cause many.
func TestAMissingPolicyCausesFewLogins(t *testing.T) {
	t.Parallel()
	server := newVaultServer(t, vaultSeed(1))
	transit, clock := server.newLogin(t)
	server.set(vaultFails(http.StatusForbidden, "permission denied"))
	for range 20 {
		if _, err := transit.Sign(t.Context(), vaultMessage); err == nil {
			t.Fatal("a call without a policy succeeded")
		}
		*clock = clock.Add(2 * time.Second)
	}
	if server.logins != 2 {
		t.Errorf("got %d logins in 40 s, want 2", server.logins)
	}
}

func TestVaultLoginWithoutAnEnd(t *testing.T) {
	t.Parallel()
	server := newVaultServer(t, vaultSeed(1))
	server.lease = 0
	transit, clock := server.newLogin(t)
	for range 3 {
		if _, err := transit.Sign(t.Context(), vaultMessage); err != nil {
			t.Fatal(err)
		}
		*clock = clock.Add(1000 * time.Hour)
	}
	if server.logins != 1 {
		t.Errorf("got %d logins, want 1", server.logins)
	}
}

func TestVaultLoginServesAllWhoWait(t *testing.T) {
	t.Parallel()
	server := newVaultServer(t, vaultSeed(1))
	transit, _ := server.newLogin(t)
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if _, err := transit.Sign(t.Context(), vaultMessage); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if server.logins != 1 {
		t.Errorf("got %d logins, want 1", server.logins)
	}
}

func TestVaultLoginIsWaitedForAsLongAsTheContextLasts(t *testing.T) {
	t.Parallel()
	server := newVaultServer(t, vaultSeed(1))
	transit, _ := server.newLogin(t)
	login := newVaultLogin(transit.client, transit.o)
	transit.token = login.current
	login.turn <- struct{}{} // somebody else logs in
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := transit.Sign(ctx, vaultMessage)
	checkVaultError(t, "Sign", err, "wait for the login to vault: context deadline exceeded")
	if server.logins != 0 {
		t.Errorf("got %d logins, want none", server.logins)
	}
}
