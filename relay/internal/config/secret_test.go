package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/relay/internal/config"
)

// holder reaches a configuration through an unexported field, where fmt calls no methods.
type holder struct{ c config.Config }

func TestPrintingNeverShowsSecrets(t *testing.T) {
	t.Parallel()
	c, err := parse(t, flags(t, "--rpc-url=", "--rpc-url-file="+file(t, "https://rpc.example/"+canary))).Load()
	if err != nil {
		t.Fatal(err)
	}
	keyInURL, err := parse(t, flags(t, "--rpc-url=https://rpc.example/"+canary)).Load()
	if err != nil {
		t.Fatal(err)
	}
	list := file(t, "- {name: one, url: 'https://u:"+canary+"@rpc.example/?k="+canary+"', websocketURL: 'wss://rpc.example/"+canary+"'}")
	endpointList, err := parse(t, flags(t, "--rpc-url=", "--rpc-endpoints-file="+list)).Load()
	if err != nil {
		t.Fatal(err)
	}
	routerFile, err := parse(t, flags(t, "--router-url-file="+file(t, "https://u:"+canary+"@router.example/"+canary), "--router-api-key-file="+file(t, canary))).Load()
	if err != nil {
		t.Fatal(err)
	}
	routerInPath, err := parse(t, flags(t, "--router-url=https://router.example/"+canary)).Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []config.Secret{routerFile.Swaps.Routers[0].URL, routerFile.Swaps.Routers[0].APIKey, routerInPath.Swaps.Routers[0].URL, routerInPath.Router.URL, c.DatabaseURL.Secret, c.Endpoints[0].URL, keyInURL.Endpoints[0].URL, endpointList.Endpoints[0].URL, endpointList.Endpoints[0].WebSocketURL} {
		if !strings.Contains(s.Reveal(), canary) {
			t.Fatal("the secret does not contain the canary")
		}
	}
	var out bytes.Buffer
	for _, c := range []*config.Config{c, keyInURL, endpointList, routerFile, routerInPath} {
		values := []any{c, *c, c.Serve, c.DatabaseURL, &c.DatabaseURL, c.Endpoints, c.Endpoints[0], &c.Endpoints[0], holder{*c}, &holder{*c}, c.Swaps, c.Router, map[string]any{"c": *c}, []config.Secret{c.DatabaseURL.Secret}}
		for _, v := range values {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p"} {
				fmt.Fprintf(&out, verb+"\n", v)
			}
			fmt.Fprintln(&out, v)
			for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
				slog.New(h).Info("configuration loaded", "config", v)
			}
		}
		for _, v := range []any{c.Serve, c.Swaps, c.DatabaseURL, map[string]any{"endpoints": c.Endpoints}} {
			if err := json.NewEncoder(&out).Encode(v); err != nil {
				t.Fatal(err)
			}
		}
	}
	// fmt also writes text in hexadecimal.
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary)} {
		if i := strings.Index(out.String(), form); i >= 0 {
			t.Errorf("a secret is shown: …%s…", out.String()[max(0, i-80):i+len(form)])
		}
	}
}

func TestLogShowsSettings(t *testing.T) {
	t.Parallel()
	c, err := parse(t, flags(t, "--rate-limit=77")).Load()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("configuration loaded", "config", c)
	for _, want := range []string{`"rate_limit":77`, `"profile":"shield-pool-v1"`, `"compliance_public_key":"` + complianceKey} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
}

func TestZeroSecretIsEmpty(t *testing.T) {
	t.Parallel()
	if got := (config.Secret{}).Reveal(); got != "" {
		t.Errorf("%d characters, want none", len(got))
	}
}
