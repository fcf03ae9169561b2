package config

import (
	"net/url"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/relaypool/relaypool/relay/cafile"
	"github.com/relaypool/relaypool/relay/commandline"
)

// checkCAFile checks the file of a flag with the authorities of a server's certificate. The file
// is read again where it is used, because it may change.
func checkCAFile(flag, path string, server Secret) error {
	if path == "" {
		return nil
	}
	if !usesTLS(server) {
		return commandline.Problem(flag, "is set, but the URL begins with http://: expected https://, because only a connection with TLS has a certificate")
	}
	if _, err := cafile.Read(path); err != nil {
		return commandline.Problem(flag, "%w", err)
	}
	return nil
}

// caFile reads the path of the file of authorities, which is relative to the list.
func (p *itemParser) caFile(n *yaml.Node) {
	path, ok := p.text("caFile", n)
	if !ok {
		return
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.folder, path)
	}
	if _, err := cafile.Read(path); err != nil {
		p.fault("caFile: %w", err)
		return
	}
	p.itemCAFile = path
}

// checkScheme refuses a URL without TLS of an item with a file of authorities, which somebody set
// because they rely on TLS.
func (p *itemParser) checkScheme(key string, server Secret) {
	if p.itemCAFile != "" && !usesTLS(server) {
		p.fault("caFile is set, but %s begins with http:// or ws://: expected https:// or wss://, because only a connection with TLS has a certificate", key)
	}
}

// usesTLS reports whether a URL is one of a server with TLS. Another check finds what is not a URL.
func usesTLS(server Secret) bool {
	u, err := url.Parse(server.Reveal())
	return err != nil || !slices.Contains([]string{"http", "ws"}, u.Scheme)
}
