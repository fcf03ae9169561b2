package main

import (
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/testca"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

// A Unix socket has no TLS, so its refusal shows that a command heeds the CA file. The store's
// tests have servers with TLS.
func TestEveryCommandSecuresItsConnectionsToTheDatabase(t *testing.T) {
	t.Parallel()
	database := []string{"--database-url-file=" + file(t, "postgres://u:"+canary+"@/d?host=/tmp"), "--database-ca-file=" + testca.New(t).File(t)}
	p := newProbed(t, localnet.Options{Initialised: true})
	sweep := []string{"--rpc-url=" + p.url, "--genesis-hash=" + localnet.GenesisHash.String()}
	tests := map[string][]string{
		"migrate":           nil,
		"ledger":            nil,
		"swaps":             nil,
		"attempts":          nil,
		"lanes":             nil,
		"proof-a":           nil,
		"compliance export": nil,
		"sweep drain":       append(sweep, "--from="+p.keyFile),
		"serve": {
			"--listen=127.0.0.1:0", "--operations-listen=127.0.0.1:0", "--rpc-url=" + p.url, "--profile=development", "--verifying-key=" + p.key, "--fee-payer-key-file=" + p.keyFile,
			"--compliance-public-key=8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
		},
	}
	for name, more := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := command(t, "", append(append(strings.Fields(name), database...), more...)...)
			if code == 0 || !strings.Contains(stderr, "a Unix socket has no TLS: expected a host name in the URL") || strings.Contains(stderr, canary) {
				t.Errorf("exit code %d and %q, want the refusal without the URL", code, stderr)
			}
		})
	}
}

func TestProbeOfEndpointBehindAPrivateAuthority(t *testing.T) {
	t.Parallel()
	p := newProbed(t, localnet.Options{Initialised: true})
	node, err := url.Parse(p.url)
	noError(t, err)
	right := testca.New(t)
	server := right.Serve(t, httputil.NewSingleHostReverseProxy(node))
	if code, r := p.probe("--rpc-url="+server.URL, "--rpc-ca-file="+right.File(t)); code != 0 || r.check("pool").State != poolcheck.OK {
		t.Errorf("exit code %d and %+v, want a healthy pool", code, r.Endpoints)
	}
	list := file(t, "- {name: wrong, url: '"+server.URL+"', caFile: "+testca.New(t).File(t)+"}\n- {name: right, url: '"+server.URL+"', caFile: "+right.File(t)+"}\n")
	code, r := p.probe("--rpc-endpoints-file=" + list)
	if code != 1 || r.Endpoints[0].State != poolcheck.Failed || r.Endpoints[1].State != poolcheck.OK || !strings.Contains(r.Endpoints[0].Found, "TLS certificate not accepted") {
		t.Errorf("exit code %d and %+v, want one endpoint whose certificate is not accepted", code, r.Endpoints)
	}
}
