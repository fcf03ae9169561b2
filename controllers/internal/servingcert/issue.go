package servingcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// skew is how far a client's clock may be behind when the client verifies a certificate.
const skew = time.Hour

// issue makes a certificate authority and a pair whose certificate is for the names. issue
// drops the authority's key, so that no Secret contains a key that could sign a certificate
// for another server. Therefore each renewal makes a new authority.
func issue(names []string, now time.Time, validity time.Duration) (*pair, *x509.Certificate, error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	template := &x509.Certificate{
		// The time makes the name unique, for people and for clients that look up the
		// authority of a certificate by its name.
		Subject:   pkix.Name{CommonName: fmt.Sprintf("relaypool-operator-ca@%d", now.UnixNano())},
		NotBefore: now.Add(-skew), NotAfter: now.Add(validity),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign,
		// The constraint covers DNS names only. The authority could still sign for
		// addresses and users, but its key is dropped.
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: names,
	}
	authority, err := sign(template, template, &authorityKey.PublicKey, authorityKey)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a serving certificate: %w", err)
	}
	leaf, err := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: template.NotBefore, NotAfter: template.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, &key.PublicKey, authorityKey)
	if err != nil {
		return nil, nil, fmt.Errorf("make a serving certificate: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("make a serving certificate: %w", err)
	}
	return &pair{
		cert: bundle([]*x509.Certificate{leaf}), leaf: leaf,
		key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}, authority, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
