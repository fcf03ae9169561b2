// Package cafile reads the PEM files that stand for a private certificate authority: those with
// the authorities that a server's certificate may come from, and those with a client's
// certificate and key. Whoever renews a certificate replaces its file, so a file is read again
// while the process runs.
//
// No error contains a file's path or any part of its content: somebody may have given a secret in
// place of a path, or named the wrong file.
package cafile

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxSize bounds a file in bytes. All authorities of a system have some 250 kB.
const maxSize = 4 << 20

// advice ends the errors about the content of a file of authorities.
const advice = "expected one or more certificates in PEM, each from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----: write the certificate of the authority that issued the server's certificate to it"

// Read returns the authorities in a file.
func Read(path string) (*x509.CertPool, error) {
	content, err := read(path)
	if err != nil {
		return nil, err
	}
	return Parse(content)
}

// Parse returns the authorities in the content of a file. It refuses a content of which it would
// have to ignore a part, because the file may just be being written.
func Parse(content []byte) (*x509.CertPool, error) {
	begun := bytes.Count(content, []byte("-----BEGIN "))
	if begun == 0 {
		return nil, fmt.Errorf("file of %d bytes has no certificate: %s", len(content), advice)
	}
	pool, rest := x509.NewCertPool(), content
	for i := 1; i <= begun; i++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, fmt.Errorf("part %d of %d of the file is incomplete: %s", i, begun, advice)
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("part %d of %d of the file is not a certificate: %s", i, begun, advice)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil { // the parser's error can repeat a part of the content
			return nil, fmt.Errorf("certificate %d of %d in the file does not parse: %s", i, begun, advice)
		}
		pool.AddCert(certificate)
	}
	return pool, nil
}

// read returns the content of a file.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = file.Close() }() // it is only read
	content, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	switch {
	case err != nil:
		return nil, unreadable(err)
	case len(content) > maxSize:
		return nil, fmt.Errorf("file has more than %d bytes: expected certificates in PEM", maxSize)
	}
	return content, nil
}

// unreadable is the error of a file that cannot be read, without its path.
func unreadable(err error) error {
	var fault *fs.PathError
	if errors.As(err, &fault) {
		err = fault.Err
	}
	return fmt.Errorf("file cannot be read: %w: expected the path of a file in PEM", err)
}
