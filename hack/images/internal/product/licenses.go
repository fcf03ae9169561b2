package product

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/relaypool/relaypool/hack/images/internal/notices"
	"github.com/relaypool/relaypool/hack/images/internal/program"
	"github.com/relaypool/relaypool/hack/images/internal/rootfs"
)

// Where an image has the project's licence, and those of everything else in it.
const (
	LicensePath = "licenses/LICENSE"
	NoticesPath = "licenses/THIRD-PARTY"
)

// authoritiesPackage is what the authorities of TLS in rootfs.Base come from.
const authoritiesPackage = "golang.org/x/crypto/x509roots/fallback/bundle"

// withoutLicense are modules that say nowhere under which licence they are.
func withoutLicense() []string { return []string{"github.com/gagliardetto/treeout"} }

// licenses are the files with the texts for a program of a product, from the modules
// that it was built from.
func (c Checkout) licenses(ctx context.Context, p Product, built program.Options) (rootfs.Tree, error) {
	own, err := os.ReadFile(filepath.Join(c.Root, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("read the project's licence: %w", err)
	}
	linked, goroot, err := program.Folders(ctx, built)
	if err != nil {
		return nil, err
	}
	data := built
	data.Module, data.Package = filepath.Join(c.Root, "hack", "images"), authoritiesPackage
	authorities, _, err := program.Folders(ctx, data)
	if err != nil {
		return nil, err
	}
	version, err := os.ReadFile(filepath.Join(goroot, "VERSION"))
	if err != nil {
		return nil, fmt.Errorf("read the toolchain's version: %w", err)
	}
	release, _, _ := strings.Cut(string(version), "\n")
	linked = append(linked, program.Linked{Path: "Go's standard library", Version: release, Root: goroot})
	var modules []notices.Module
	for _, m := range append(linked, authorities...) {
		if m.Version == "" { // the project itself
			continue
		}
		texts, err := notices.Of(m)
		if err != nil {
			return nil, err
		}
		modules = append(modules, texts)
	}
	page, err := notices.Write(heading(p), modules, withoutLicense())
	if err != nil {
		return nil, err
	}
	return rootfs.Tree{rootfs.Text(LicensePath, string(own)), rootfs.Text(NoticesPath, page)}, nil
}

func heading(p Product) string {
	return "/" + p.Name + " is linked from the Go modules below, and /" + rootfs.CertificatesPath + " is made from\n" +
		"golang.org/x/crypto/x509roots/fallback, which has Mozilla's authorities. Each of them is under\n" +
		"the texts that stand below its name. The source of each is what\n" +
		"`go mod download MODULE@VERSION` gets, unchanged. The project's own licence is /" + LicensePath + ".\n"
}
