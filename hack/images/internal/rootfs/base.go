package rootfs

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Nonroot is the user and the group that every container runs as.
const Nonroot = 65532

// CertificatesPath is where Go's TLS, and most other, looks for authorities.
const CertificatesPath = "etc/ssl/certs/ca-certificates.crt"

// Base is what every image has besides its program: the authorities of TLS, the
// names of root and of the user that it runs as, and a folder for temporary files.
func Base() (Tree, error) {
	certificates, err := certificates()
	if err != nil {
		return nil, err
	}
	return Tree{
		Text(CertificatesPath, certificates),
		Text("etc/passwd", fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/:/sbin/nologin\n", Nonroot, Nonroot)),
		Text("etc/group", fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", Nonroot)),
		Dir("tmp", fs.ModeSticky|0o777),
	}, nil
}

// certificates renders Mozilla's authorities as golang.org/x/crypto has them at
// the version that go.mod pins. Those that Mozilla trusts under conditions only,
// such as issued before a date, are left out: a file cannot say the condition.
func certificates() (string, error) {
	type root struct{ name, text string }
	var roots []root
	for r := range bundle.Roots() {
		if r.Constraint != nil {
			continue
		}
		certificate, err := x509.ParseCertificate(r.Certificate)
		if err != nil {
			return "", fmt.Errorf("read the bundle of authorities: %w", err)
		}
		name := certificate.Subject.String()
		roots = append(roots, root{name, "# " + name + "\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate}))})
	}
	slices.SortStableFunc(roots, func(a, b root) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	for _, r := range roots {
		b.WriteString(r.text)
	}
	return b.String(), nil
}
