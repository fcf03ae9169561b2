package signer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/openbao/openbao/api/v2"
)

// vaultLogin has the token of a login by Kubernetes, and logs in again before that ends.
type vaultLogin struct {
	client           *vaultClient
	mount, role, jwt string
	now              func() time.Time

	// turn has one element while a caller uses the fields below: one login serves all who wait for it.
	turn  chan struct{}
	token string
	began time.Time
	// lease is how long the token is valid; 0 for ever. renewed is when a login was last tried while
	// the token was valid.
	lease   time.Duration
	renewed time.Time
	// replaced is true if the token was got in the place of a refused one.
	replaced bool
}

func newVaultLogin(client *vaultClient, o VaultTransitOptions) *vaultLogin {
	return &vaultLogin{client: client, mount: o.KubernetesMount, role: o.KubernetesRole, jwt: o.JWTFile, now: o.Now, turn: make(chan struct{}, 1)}
}

const (
	// renewTimeout and renewPause bound what a login costs that hangs while the old token still serves.
	renewTimeout = 500 * time.Millisecond
	renewPause   = 5 * time.Second
	// reloginPause is the time after a login because of a refused token in which a refusal leads to
	// no other one: the policy lacks rights, and each login would leave another token behind.
	reloginPause = time.Minute
)

// current returns a token: another than the refused one, unless that was got in the place of a
// refused one a moment ago. It logs in when it has none, or when less than a fifth of the lease is
// left; if that fails, the old token serves until its lease ends.
func (l *vaultLogin) current(ctx context.Context, refused string) (string, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return "", fmt.Errorf("wait for the login to vault: %w", ctx.Err())
	}
	now := l.now()
	if l.token == refused && (!l.replaced || now.Sub(l.began) >= reloginPause) {
		l.token = ""
	}
	valid := l.token != "" && (l.lease == 0 || now.Sub(l.began) < l.lease)
	switch {
	case valid && (l.lease == 0 || now.Sub(l.began) < l.lease*4/5 || now.Sub(l.renewed) < renewPause):
		return l.token, nil
	case valid:
		l.renewed = now
		renewal, cancel := context.WithTimeout(ctx, renewTimeout)
		defer cancel()
		_ = l.login(renewal) // it is tried again until the lease ends
		return l.token, nil
	}
	if err := l.login(ctx); err != nil {
		return "", err
	}
	l.replaced = refused != ""
	return l.token, nil
}

// login replaces the token.
func (l *vaultLogin) login(ctx context.Context) error {
	jwt, err := readTokenFile(l.jwt) // Kubernetes replaces it some time before it expires
	if err != nil {
		return err
	}
	began := l.now()
	var answer struct {
		Auth struct {
			ClientToken   string `json:"client_token"`
			LeaseDuration int    `json:"lease_duration"`
		} `json:"auth"`
	}
	path := "auth/" + l.mount + "/login"
	err = l.client.call(ctx, "", http.MethodPost, path, map[string]string{"role": l.role, "jwt": jwt}, &answer)
	var refusal *api.ResponseError
	if errors.As(err, &refusal) {
		return l.explain(refusal.StatusCode, vaultReasons(refusal, jwt))
	}
	if err != nil {
		return err
	}
	if !fitsVaultHeader(answer.Auth.ClientToken) {
		return fmt.Errorf("vault's login at %q gave no token: expected one without further steps for the role %q", path, l.role)
	}
	l.token, l.began, l.lease = answer.Auth.ClientToken, began, time.Duration(answer.Auth.LeaseDuration)*time.Second
	return nil
}

func (l *vaultLogin) explain(status int, reasons string) error {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden:
		return fmt.Errorf("vault refused the login with the role %q at %q (%d: %s): expected the auth method kubernetes there, with a role that is bound to the pod's service account, its namespace and the audience of its token", l.role, "auth/"+l.mount, status, reasons)
	case http.StatusNotFound:
		return fmt.Errorf("vault has no auth method at %q (%d: %s): enable kubernetes there, or correct the mount or the namespace", "auth/"+l.mount, status, reasons)
	}
	return fmt.Errorf("log in to vault: %w", vaultStatusError(status, reasons))
}

// readTokenFile reads a token, which is one line.
func readTokenFile(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if !fitsVaultHeader(token) {
		return "", fmt.Errorf("read the token: %s has %d bytes that are not one: expected one line of printable characters", path, len(content))
	}
	return token, nil
}

// fitsVaultHeader reports whether a token can be sent in a header.
func fitsVaultHeader(token string) bool {
	return token != "" && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}
