package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is far beyond any test and short enough that a certificate that
// gets out is soon worth nothing.
const validity = 24 * time.Hour

// authority signs the server's certificate and those of its users.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// pair is a certificate and its key, both as PEM.
type pair struct{ cert, key []byte }

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	template, err := certificate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	return &authority{key, cert}, nil
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// server signs a certificate for the loopback address.
func (a *authority) server() (pair, error) {
	template, err := certificate(pkix.Name{CommonName: apiServerProgram})
	if err != nil {
		return pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	return a.sign(template)
}

// user signs a certificate that Kubernetes takes as the user of that name in
// those groups.
func (a *authority) user(name string, groups []string) (pair, error) {
	template, err := certificate(pkix.Name{CommonName: name, Organization: groups})
	if err != nil {
		return pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

func (a *authority) sign(template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("make a certificate: %w", err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return pair{}, fmt.Errorf("make a certificate: %w", err)
	}
	encoded, err := privatePEM(key)
	if err != nil {
		return pair{}, err
	}
	return pair{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: encoded}, nil
}

func certificate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(validity),
	}, nil
}

func privatePEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// The files that the API server reads, below the server's folder.
const (
	authorityFile    = "authority.crt"
	authorityKeyFile = "authority.key"
	serverCertFile   = "server.crt"
	serverKeyFile    = "server.key"
	// tokenKeyFile signs the tokens of service accounts.
	tokenKeyFile = "tokens.key"
	// The API server shows proxyCertFile to servers that it passes requests on to,
	// and they take what it says of users when it is signed by proxyAuthorityFile.
	proxyAuthorityFile = "proxy-authority.crt"
	proxyCertFile      = "proxy.crt"
	proxyKeyFile       = "proxy.key"
)

// proxyName is who the API server is to the servers behind it.
const proxyName = "relaypool-test-proxy"

// writeFiles puts down what the API server reads, and what a later Open does.
func (a *authority) writeFiles(dir string) error {
	server, err := a.server()
	if err != nil {
		return err
	}
	key, err := privatePEM(a.key)
	if err != nil {
		return err
	}
	tokenKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	tokens, err := privatePEM(tokenKey)
	if err != nil {
		return err
	}
	// An authority of its own: whoever has a certificate of the other one is a user,
	// and may not say that he is somebody else.
	proxies, err := newAuthority("relaypool-test-proxy-authority")
	if err != nil {
		return err
	}
	proxy, err := proxies.user(proxyName, nil)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		proxyAuthorityFile: proxies.pem(), proxyCertFile: proxy.cert, proxyKeyFile: proxy.key,
		authorityFile: a.pem(), authorityKeyFile: key,
		serverCertFile: server.cert, serverKeyFile: server.key,
		tokenKeyFile: tokens,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write the certificates: %w", err)
		}
	}
	return nil
}

// readAuthority reads what writeFiles wrote.
func readAuthority(dir string) (*authority, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, authorityFile), filepath.Join(dir, authorityKeyFile))
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read the certificate authority: its key is a %T, expected *ecdsa.PrivateKey", pair.PrivateKey)
	}
	return &authority{key, pair.Leaf}, nil
}
