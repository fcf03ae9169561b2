// Package product says which images the project has and makes them from a
// checkout.
package product

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/relaypool/relaypool/hack/images/internal/image"
	"github.com/relaypool/relaypool/hack/images/internal/program"
	"github.com/relaypool/relaypool/hack/images/internal/rootfs"
)

// Registry is where releases are published.
const Registry = "ghcr.io/relaypool"

// repository is the project's own.
const repository = "https://github.com/relaypool/relaypool"

// Product is an image of the release. Its program, and the file in the image, are
// called as it is.
type Product struct {
	// Name is operator or relay, Title and Description are for registries.
	Name, Title, Description string
	// Package is the main package in the checkout.
	Package string
}

// All are the images of a release.
func All() []Product {
	return []Product{
		{"operator", "Relaypool operator", "Keeps fleets of relays for shielded pools on Solana as RelayPools declare them", "./controllers/cmd/operator"},
		{"relay", "Relaypool relay", "Takes proofs of a shielded pool on Solana, pays the network's fee and puts the transactions on the chain", "./relay/cmd/relay"},
	}
}

// Named finds a product.
func Named(wanted string) (Product, error) {
	all := All()
	i := slices.IndexFunc(all, func(p Product) bool { return p.Name == wanted })
	if i < 0 {
		return Product{}, fmt.Errorf("image %q: want operator or relay", wanted)
	}
	return all[i], nil
}

// Checkout is the source to build from.
type Checkout struct {
	// Root is the folder of the project's go.mod.
	Root string
	// Epoch is the value of SOURCE_DATE_EPOCH; empty means the commit's time.
	Epoch string
	// Scratch is a folder for the programs.
	Scratch string
}

// Built is an image with what it was made from.
type Built struct {
	Product  Product
	Platform program.Platform
	Version  string
	Source   program.Source
	Program  *program.Program
	Image    v1.Image

	licenses rootfs.Tree
}

// Build builds a product's program and makes its image.
func (c Checkout) Build(ctx context.Context, p Product, platform program.Platform) (*Built, error) {
	b, err := c.compile(ctx, p, platform)
	if err != nil {
		return nil, err
	}
	base, err := rootfs.Base()
	if err != nil {
		return nil, err
	}
	entrypoint, labels := p.Configuration(b.Version, b.Source)
	b.Image, err = image.New(image.Spec{
		Platform: platform, Created: b.Source.Time, Entrypoint: entrypoint, Labels: labels,
		Layers: []image.Layer{
			{Files: base, History: "authorities of TLS, users and /tmp"},
			{Files: b.files(), History: "/" + p.Name + " from " + p.Package + ", and licences"},
		},
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Files gives all files of a product's image, for tools that make images in
// another way.
func (c Checkout) Files(ctx context.Context, p Product, platform program.Platform) (rootfs.Tree, error) {
	b, err := c.compile(ctx, p, platform)
	if err != nil {
		return nil, err
	}
	base, err := rootfs.Base()
	if err != nil {
		return nil, err
	}
	return append(base, b.files()...), nil
}

func (c Checkout) compile(ctx context.Context, p Product, platform program.Platform) (*Built, error) {
	if c.Root == "" || c.Scratch == "" {
		return nil, errors.New("build an image: the checkout's root and a folder for programs are required")
	}
	version, err := program.Version(c.Root)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(c.Scratch, strings.ReplaceAll(platform.String(), "/", "-"), p.Name)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return nil, fmt.Errorf("build an image: %w", err)
	}
	options := program.Options{Module: c.Root, Package: p.Package, Platform: platform, File: file}
	built, err := program.Build(ctx, options)
	if err != nil {
		return nil, err
	}
	licenses, err := c.licenses(ctx, p, options)
	if err != nil {
		return nil, err
	}
	source, err := program.ReadSource(ctx, c.Root, c.Epoch)
	if err != nil {
		return nil, err
	}
	return &Built{Product: p, Platform: platform, Version: version, Source: source, Program: built, licenses: licenses}, nil
}

// files are what an image has for its product, besides what every image has.
func (b *Built) files() rootfs.Tree {
	return append(rootfs.Tree{rootfs.Program(b.Product.Name, b.Program.File)}, b.licenses...)
}

// Configuration is what an image of the product says besides its files, for the
// given state of the source.
func (p Product) Configuration(version string, source program.Source) (entrypoint []string, labels map[string]string) {
	const prefix = "org.opencontainers.image." // OCI's own annotations
	return []string{"/" + p.Name}, map[string]string{
		prefix + "title":         p.Title,
		prefix + "description":   p.Description,
		prefix + "version":       version,
		prefix + "revision":      source.Revision,
		prefix + "created":       source.Time.Format(time.RFC3339),
		prefix + "source":        repository,
		prefix + "documentation": repository + "/blob/main/docs/guides/images.md",
		prefix + "licenses":      "Apache-2.0",
		prefix + "vendor":        "relaypool",
	}
}

// Tag is the image's name, below a registry and its folder, such as
// ghcr.io/relaypool.
func (b *Built) Tag(registry string) (name.Tag, error) {
	tag, err := name.NewTag(registry+"/"+b.Product.Name+":"+b.Version, name.StrictValidation)
	if err != nil {
		return name.Tag{}, fmt.Errorf("name the image: %w", err)
	}
	return tag, nil
}
