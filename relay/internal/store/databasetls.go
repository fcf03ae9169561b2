package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/cafile"
)

// TLSFiles are the PEM files that secure the connections to the database. The zero value leaves
// TLS to the database's URL.
type TLSFiles struct {
	// CA has the only authorities that the database's certificate may come from. If it is empty,
	// these are the system's.
	CA string
	// ClientCert and ClientKey identify the relay to the database; both or none are empty.
	ClientCert, ClientKey string
}

// Open connects to url with at most maxConns connections. The URL has a password, so no error repeats
// it. With files, every connection, to every host in the URL, uses TLS, and the database's certificate
// has to come from an authority and to name the host, whatever the URL's sslmode is. The files are
// read for each new connection, so a renewed certificate needs no restart.
func Open(ctx context.Context, url string, files TLSFiles, maxConns int32) (*pgxpool.Pool, error) {
	cfg, err := poolConfig(url, maxConns)
	if err != nil {
		return nil, err
	}
	if files != (TLSFiles{}) {
		if err := files.require(cfg.ConnConfig); err != nil {
			return nil, err
		}
		cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			if err := files.load(c); err != nil {
				return &fileError{err}
			}
			return nil
		}
	}
	return newPool(ctx, cfg)
}

// fileError is the error of a connection that was not tried, because a file is unusable. Another
// try may find the file mended.
type fileError struct{ err error }

func (e *fileError) Error() string { return e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// require sets TLS with full verification for every host in the URL, and removes the tries
// without TLS that sslmode added.
func (f TLSFiles) require(c *pgx.ConnConfig) error {
	if (f.ClientCert == "") != (f.ClientKey == "") {
		return errors.New("database connection has a client certificate without its key, or a key without its certificate: expected both or none")
	}
	hosts := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	c.Fallbacks = nil
	for i, h := range hosts {
		if network, _ := pgconn.NetworkAddress(h.Host, h.Port); network == "unix" {
			return errors.New("database URL has no host name, and a Unix socket has no TLS: expected a host name in the URL, or no ca file and no client certificate")
		}
		if i > 0 && h.Host == hosts[i-1].Host && h.Port == hosts[i-1].Port {
			continue // another try of sslmode
		}
		config := verifyFull(h.Host, h.TLSConfig)
		if c.SSLNegotiation == "direct" {
			config.NextProtos = []string{"postgresql"}
		}
		if i == 0 {
			c.TLSConfig = config
			continue
		}
		c.Fallbacks = append(c.Fallbacks, &pgconn.FallbackConfig{Host: h.Host, Port: h.Port, TLSConfig: config})
	}
	if f.ClientCert != "" && c.SSLCertMode == "disable" {
		c.SSLCertMode = "allow" // the URL's setting would leave the certificate out
	}
	return nil
}

// verifyFull is a TLS configuration that verifies authority and host name. It keeps the URL's own
// certificates and authorities.
func verifyFull(host string, fromURL *tls.Config) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: strings.TrimSuffix(host, ".")}
	if fromURL != nil {
		config.RootCAs, config.Certificates = fromURL.RootCAs, fromURL.Certificates
	}
	return config
}

// load reads the files for a new connection.
func (f TLSFiles) load(c *pgx.ConnConfig) error {
	configs := []*tls.Config{c.TLSConfig}
	for _, fallback := range c.Fallbacks {
		configs = append(configs, fallback.TLSConfig)
	}
	if f.CA != "" {
		roots, err := cafile.Read(f.CA)
		if err != nil {
			return fmt.Errorf("read the database's ca file: %w", err)
		}
		for _, config := range configs {
			config.RootCAs = roots
		}
	}
	if f.ClientCert != "" {
		pair, err := cafile.ClientCertificate(f.ClientCert, f.ClientKey)
		if err != nil {
			return fmt.Errorf("read the database's client certificate: %w", err)
		}
		for _, config := range configs {
			config.Certificates = []tls.Certificate{pair}
		}
	}
	return nil
}
