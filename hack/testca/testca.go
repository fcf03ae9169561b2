// Package testca makes certificate authorities for tests, and servers with certificates of theirs.
package testca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority issues certificates. PEM is its own certificate.
type Authority struct {
	PEM         []byte
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// New makes an authority.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "authority " + rand.Text()}}
	a.certificate, a.key = issue(t, template, nil)
	a.PEM = encode("CERTIFICATE", a.certificate.Raw)
	return a
}

// File writes the authority's certificate to a file and returns its path.
func (a *Authority) File(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	Write(t, path, a.PEM)
	return path
}

// Issue makes a certificate for a server with these host names and IP addresses, or for a client
// with this name, and returns it with its key, both in PEM.
func (a *Authority) Issue(t testing.TB, name string, hosts ...string) (certificate, key []byte) {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	leaf, private := issue(t, template, a)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE", leaf.Raw), encode("PRIVATE KEY", der)
}

// Serve starts a server on 127.0.0.1 with HTTP/2 and a certificate of the authority.
func (a *Authority) Serve(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	pair, err := tls.X509KeyPair(a.Issue(t, "server", "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse the certificate are no news
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// Write replaces a file's content as a whole, as Kubernetes does.
func Write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// issue makes a certificate for a new key; a nil issuer signs itself.
func issue(t testing.TB, template *x509.Certificate, issuer *Authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		t.Fatal(err)
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.certificate, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
