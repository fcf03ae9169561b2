package cafile

import (
	"crypto/tls"
	"errors"
	"fmt"
)

// ClientCertificate returns the certificate and key of a client from their files, which are read
// anew. Both files have to be in PEM, and the key without a password.
func ClientCertificate(certFile, keyFile string) (tls.Certificate, error) {
	for last := false; ; last = true {
		certificate, err := read(certFile)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("client certificate's file: %w", err)
		}
		key, err := read(keyFile)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("client key's file: %w", err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		switch {
		case err == nil:
			return pair, nil
		case last: // the error is left out, because it can repeat words of the content
			return tls.Certificate{}, errors.New("files of the client's certificate and key do not fit together: expected a certificate in PEM, and its private key in PEM without a password")
		}
		// Both may have been renewed between the two readings: once more.
	}
}
