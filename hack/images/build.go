package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/relaypool/relaypool/hack/images/internal/archive"
	"github.com/relaypool/relaypool/hack/images/internal/product"
	"github.com/relaypool/relaypool/hack/images/internal/program"
	"github.com/relaypool/relaypool/hack/images/internal/sbom"
)

// authorities is the module whose certificates the images have.
const authorities = "golang.org/x/crypto/x509roots/fallback"

// epochVariable is the usual one of reproducible builds.
const epochVariable = "SOURCE_DATE_EPOCH"

// release is one run of the command build.
type release struct {
	checkout  product.Checkout
	out       string
	registry  string
	oci       string
	platforms []program.Platform
	progress  io.Writer

	digests []string
}

func build(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("images build", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", "../..", "`folder` of the checkout")
	out := flags.String("out", "../../bin/images", "`folder` for archives, SBOMs and digests.txt")
	registry := flags.String("registry", product.Registry, "`registry` and folder in it that the images are named for")
	platforms := flags.String("platform", "linux/amd64", "`platforms`, separated by commas: linux/amd64, linux/arm64")
	oci := flags.String("oci", "", "`folder` for an OCI layout as well, with one index for each image over its platforms")
	if err := parse(flags, args); err != nil {
		return err
	}
	r := &release{out: *out, registry: *registry, oci: *oci, progress: stdout}
	for text := range strings.SplitSeq(*platforms, ",") {
		platform, err := program.ParsePlatform(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("-platform: %w", err)
		}
		r.platforms = append(r.platforms, platform)
	}
	return withCheckout(*root, func(c product.Checkout) error {
		r.checkout = c
		return r.run(ctx)
	})
}

// parse reads flags and wants nothing behind them.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: want flags only, got %q", flags.Name(), flags.Arg(0))
	}
	return nil
}

// withCheckout gives a checkout whose programs are deleted afterwards.
func withCheckout(root string, use func(product.Checkout) error) (err error) {
	scratch, err := os.MkdirTemp("", "relaypool-images-")
	if err != nil {
		return fmt.Errorf("make a folder for programs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	return use(product.Checkout{Root: root, Epoch: os.Getenv(epochVariable), Scratch: scratch})
}

func (r *release) run(ctx context.Context) error {
	if err := os.MkdirAll(r.out, 0o750); err != nil {
		return fmt.Errorf("make the folder for images: %w", err)
	}
	var indexes []archive.Tagged
	for _, p := range product.All() {
		var images []v1.Image
		for i, platform := range r.platforms {
			began := time.Now()
			built, err := r.checkout.Build(ctx, p, platform)
			if err != nil {
				return err
			}
			file := p.Name
			if i > 0 { // the first platform's archive has the plain name
				file += "-" + strings.ReplaceAll(platform.String(), "/", "-")
			}
			if err := r.write(built, file, began); err != nil {
				return err
			}
			images = append(images, built.Image)
			if i+1 < len(r.platforms) || r.oci == "" {
				continue
			}
			tagged, err := r.join(built, images)
			if err != nil {
				return err
			}
			indexes = append(indexes, tagged)
		}
	}
	if r.oci != "" {
		if err := archive.WriteLayout(r.oci, indexes); err != nil {
			return err
		}
	}
	content := strings.Join(r.digests, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(r.out, "digests.txt"), []byte(content), 0o644); err != nil { //nolint:gosec // digests are public
		return fmt.Errorf("write digests: %w", err)
	}
	return nil
}

// write writes an image's archive and SBOM and notes its digest.
func (r *release) write(b *product.Built, file string, began time.Time) error {
	tag, err := b.Tag(r.registry)
	if err != nil {
		return err
	}
	digest, err := b.Image.Digest()
	if err != nil {
		return fmt.Errorf("take the image's digest: %w", err)
	}
	if err := archive.Write(filepath.Join(r.out, file+".tar"), tag, b.Image); err != nil {
		return err
	}
	data, err := dataModules()
	if err != nil {
		return err
	}
	document, err := sbom.New(sbom.Image{
		Reference: tag.Name(), Digest: digest.String(), Version: b.Version, Revision: b.Source.Revision, Created: b.Source.Time,
		Program: b.Program.Info, Data: data,
	})
	if err != nil {
		return err
	}
	sheet, err := os.Create(filepath.Join(r.out, file+".spdx.json"))
	if err != nil {
		return fmt.Errorf("write the SBOM: %w", err)
	}
	if err := errors.Join(sbom.Write(sheet, document), sheet.Close()); err != nil {
		return err
	}
	r.note(digest, tag.Name(), b.Platform.String())
	fmt.Fprintf(r.progress, "%s  %s  %s  %s  in %.1f s\n", filepath.Join(r.out, file+".tar"), tag, b.Platform, digest, time.Since(began).Seconds())
	return nil
}

// join makes the index over an image's platforms and notes its digest.
func (r *release) join(b *product.Built, images []v1.Image) (archive.Tagged, error) {
	tag, err := b.Tag(r.registry)
	if err != nil {
		return archive.Tagged{}, err
	}
	index, err := archive.Index(images...)
	if err != nil {
		return archive.Tagged{}, err
	}
	digest, err := index.Digest()
	if err != nil {
		return archive.Tagged{}, fmt.Errorf("take the index' digest: %w", err)
	}
	r.note(digest, tag.Name(), "index")
	return archive.Tagged{Tag: tag, Index: index}, nil
}

// note adds a line of digests.txt: digest, name, and platform or "index".
func (r *release) note(digest v1.Hash, image, platform string) {
	r.digests = append(r.digests, digest.String()+"  "+image+"  "+platform)
}

// dataModules are the modules whose files this program puts into images, as it
// was built with them.
func dataModules() ([]*debug.Module, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, errors.New("this program has no build information: build it with the go command")
	}
	i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == authorities })
	if i < 0 {
		return nil, fmt.Errorf("this program was built without %s: build it with the go command", authorities)
	}
	return []*debug.Module{info.Deps[i]}, nil
}
