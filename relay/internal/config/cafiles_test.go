package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/testca"
	"github.com/relaypool/relaypool/relay/internal/config"
)

func TestFilesOfPrivateAuthoritiesAreRead(t *testing.T) {
	t.Parallel()
	authority := testca.New(t)
	certificate, key := authority.Issue(t, "relay")
	ca := file(t, string(authority.PEM))
	// A relative path is relative to the list's folder.
	dir := folder(t)
	for name, content := range map[string]string{
		"ca.crt":         string(authority.PEM),
		"endpoints.yaml": "- {name: a, url: 'https://h', websocketURL: 'wss://i', caFile: ca.crt}\n- {name: b, url: 'https://j', websocketURL: none, caFile: " + ca + "}\n- {name: c, url: 'http://k'}\n",
		"routers.yaml":   "- {name: a, url: 'https://h', caFile: ca.crt}\n- {name: b, url: 'http://i'}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	certificateFile, keyFile := file(t, string(certificate)), file(t, string(key))
	// CloudNativePG writes the URL in this form.
	const url = "postgresql://app:" + canary + "@cluster-rw.team:5432/app"
	tests := map[string]struct {
		args []string
		want any
		got  func(*config.Config) any
	}{
		"the files of the database": {
			args: []string{"--database-url-file=" + file(t, url), "--database-ca-file=" + ca, "--database-client-cert-file=" + certificateFile, "--database-client-key-file=" + keyFile},
			want: []string{url, ca, certificateFile, keyFile},
			got: func(c *config.Config) any {
				d := c.DatabaseURL
				return []string{d.Reveal(), d.CAFile, d.ClientCertFile, d.ClientKeyFile}
			},
		},
		"a client certificate needs no CA file": {
			args: []string{"--database-client-cert-file=" + certificateFile, "--database-client-key-file=" + keyFile},
			want: []string{"", certificateFile},
			got:  func(c *config.Config) any { return []string{c.DatabaseURL.CAFile, c.DatabaseURL.ClientCertFile} },
		},
		"the file of one endpoint": {
			args: []string{"--rpc-url=https://rpc.example", "--rpc-ca-file=" + ca},
			want: ca,
			got:  func(c *config.Config) any { return c.Endpoints[0].CAFile },
		},
		"the file of an endpoint whose URL is in a file": {
			args: []string{"--rpc-url=", "--rpc-url-file=" + file(t, "https://rpc.example/"+canary), "--rpc-ca-file=" + ca},
			want: ca,
			got:  func(c *config.Config) any { return c.Endpoints[0].CAFile },
		},
		"the files of several endpoints": {
			args: []string{"--rpc-url=", "--rpc-endpoints-file=" + filepath.Join(dir, "endpoints.yaml")},
			want: []string{filepath.Join(dir, "ca.crt"), ca, ""},
			got: func(c *config.Config) any {
				return []string{c.Endpoints[0].CAFile, c.Endpoints[1].CAFile, c.Endpoints[2].CAFile}
			},
		},
		"the files of the routers": {
			args: []string{"--router-url=https://router.example", "--router-ca-file=" + ca, "--router-fallbacks-file=" + filepath.Join(dir, "routers.yaml")},
			want: []string{ca, filepath.Join(dir, "ca.crt"), ""},
			got: func(c *config.Config) any {
				return []string{c.Swaps.Routers[0].CAFile, c.Swaps.Routers[1].CAFile, c.Swaps.Routers[2].CAFile}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := parse(t, flags(t, tc.args...)).Load()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.got(c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestProblemsOfPrivateAuthoritiesAreListedWithoutValues(t *testing.T) {
	t.Parallel()
	authority := testca.New(t)
	certificate, key := authority.Issue(t, "relay")
	other, _ := authority.Issue(t, "relay")
	ca, garbage, missing := file(t, string(authority.PEM)), file(t, canary), filepath.Join(folder(t), canary)
	endpoints := func(item string) []string {
		return []string{"--rpc-url=", "--rpc-endpoints-file=" + file(t, "- "+item)}
	}
	routers := func(item string) []string {
		return []string{"--router-url=https://router.example", "--router-fallbacks-file=" + file(t, "- "+item)}
	}
	const router = "--router-url=https://router.example"
	tests := map[string]struct {
		args []string
		flag string
		want string
	}{
		"a database's CA file that is not there":        {[]string{"--database-ca-file=" + missing}, "--database-ca-file ($RELAYPOOL_DATABASE_CA_FILE)", "file cannot be read: no such file or directory: expected the path of a file in PEM"},
		"a database's CA file of another kind":          {[]string{"--database-ca-file=" + garbage}, "--database-ca-file", "file of 12 bytes has no certificate: expected one or more certificates in PEM"},
		"a private key in place of the authority":       {[]string{"--database-ca-file=" + file(t, string(key))}, "--database-ca-file", "part 1 of 1 of the file is not a certificate"},
		"a client certificate without its key":          {[]string{"--database-client-cert-file=" + file(t, string(certificate))}, "--database-client-cert-file", "only one of this setting and --database-client-key-file ($RELAYPOOL_DATABASE_CLIENT_KEY_FILE) is set"},
		"a client key without its certificate":          {[]string{"--database-client-key-file=" + file(t, string(key))}, "--database-client-cert-file", "give both, or none"},
		"a client certificate with another one's key":   {[]string{"--database-client-cert-file=" + file(t, string(other)), "--database-client-key-file=" + file(t, string(key))}, "--database-client-cert-file", "do not fit together"},
		"a client key that is not there":                {[]string{"--database-client-cert-file=" + file(t, string(certificate)), "--database-client-key-file=" + missing}, "--database-client-cert-file", "client key's file: file cannot be read"},
		"an endpoint's CA file that is not there":       {[]string{"--rpc-url=https://rpc.example", "--rpc-ca-file=" + missing}, "--rpc-ca-file", "file cannot be read"},
		"an endpoint's CA file and no TLS":              {[]string{"--rpc-url=http://" + canary, "--rpc-ca-file=" + ca}, "--rpc-ca-file", "the URL begins with http://: expected https://"},
		"an endpoint's CA file beside a list":           {append(endpoints("{name: a, url: 'https://"+canary+"'}"), "--rpc-ca-file="+ca), "--rpc-ca-file", "set caFile of each endpoint in the list"},
		"a listed CA file that is not there":            {endpoints("{name: a, url: 'https://h', caFile: " + canary + "}"), "--rpc-endpoints-file", "endpoint 1 of 1: caFile: file cannot be read"},
		"a listed CA file of another kind":              {endpoints("{name: a, url: 'https://h', caFile: " + garbage + "}"), "--rpc-endpoints-file", "endpoint 1 of 1: caFile: file of 12 bytes has no certificate"},
		"a listed CA file that is no text":              {endpoints("{name: a, url: 'https://h', caFile: [" + canary + "]}"), "--rpc-endpoints-file", "caFile is not text"},
		"a listed CA file and no TLS":                   {endpoints("{name: a, url: 'http://" + canary + "', caFile: " + ca + "}"), "--rpc-endpoints-file", "caFile is set, but url begins with http:// or ws://"},
		"a listed CA file and a WebSocket without TLS":  {endpoints("{name: a, url: 'https://h', websocketURL: 'ws://" + canary + "', caFile: " + ca + "}"), "--rpc-endpoints-file", "caFile is set, but websocketURL begins with http:// or ws://"},
		"a router's CA file that is not there":          {[]string{router, "--router-ca-file=" + missing}, "--router-ca-file", "file cannot be read"},
		"a router's CA file and no TLS":                 {[]string{"--router-url=http://" + canary, "--router-ca-file=" + ca}, "--router-ca-file", "expected https://"},
		"a router's CA file without a router":           {[]string{"--router-ca-file=" + missing}, "--router-ca-file", "is set, but no router is"},
		"a fallback router's CA file that is not there": {routers("{name: a, url: 'https://h', caFile: " + canary + "}"), "--router-fallbacks-file", "router 1 of 1: caFile: file cannot be read"},
		"a fallback router's CA file and no TLS":        {routers("{name: a, url: 'http://" + canary + "', caFile: " + ca + "}"), "--router-fallbacks-file", "caFile is set, but url begins with http://"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(t, flags(t, tc.args...)).Load()
			switch {
			case err == nil:
				t.Fatal("the settings are accepted")
			case strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "\n  "+tc.flag) || !strings.Contains(err.Error(), tc.want):
				t.Errorf("error is %v, want one problem of %s with %s", err, tc.flag, tc.want)
			case strings.Contains(err.Error(), canary):
				t.Errorf("the error contains a value: %v", err)
			}
		})
	}
}
