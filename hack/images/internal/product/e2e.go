package product

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/relaypool/relaypool/hack/images/internal/debian"
	"github.com/relaypool/relaypool/hack/images/internal/image"
	"github.com/relaypool/relaypool/hack/images/internal/program"
	"github.com/relaypool/relaypool/hack/images/internal/rootfs"
)

// Development images have no version: they are built, loaded and thrown away.
const (
	developmentFolder = "relaypool"
	developmentTag    = "dev"
)

// verifyingKey is where the image of the local chain has the development key.
const verifyingKey = "verification_key.json"

// Development is an image for the end-to-end suite: the local chain, the gate into
// the cluster, or Postgres.
type Development struct {
	// Name is the image's, which is relaypool/Name:dev.
	Name string
	// module, below the root, and pkg are where its program is.
	module, pkg string
	stopSignal  string
	// more adds to the program, whose name in the image is given: files and what
	// the entry point has after it.
	more func(ctx context.Context, root string) (rootfs.Tree, []string, error)
}

// DevelopmentImages are all of them.
func DevelopmentImages() []Development {
	return []Development{
		{Name: "localnet", module: ".", pkg: "./hack/localnet/cmd/localnet", more: withVerifyingKey},
		{Name: "gate", module: ".", pkg: "./hack/e2e/cmd/gate"},
		// A fast shutdown: the usual signal makes it wait for its clients.
		{Name: "postgres", module: "hack/images", pkg: "./cmd/postgres-entrypoint", stopSignal: "SIGINT", more: withServer},
	}
}

// Reference is the image's name and tag.
func (d Development) Reference() string {
	return developmentFolder + "/" + d.Name + ":" + developmentTag
}

// BuildDevelopment makes one of the suite's images, for this machine's platform
// where it takes files of it.
func (c Checkout) BuildDevelopment(ctx context.Context, d Development, platform program.Platform) (v1.Image, error) {
	file := filepath.Join(c.Scratch, d.Name)
	if _, err := program.Build(ctx, program.Options{Module: filepath.Join(c.Root, d.module), Package: d.pkg, Platform: platform, File: file}); err != nil {
		return nil, err
	}
	source, err := program.ReadSource(ctx, c.Root, c.Epoch)
	if err != nil {
		return nil, err
	}
	base, err := rootfs.Base()
	if err != nil {
		return nil, err
	}
	layers := []image.Layer{{Files: base, History: "authorities of TLS, users and /tmp"}}
	entry := []string{"/" + d.Name}
	if d.more != nil {
		files, arguments, err := d.more(ctx, c.Root)
		if err != nil {
			return nil, fmt.Errorf("collect the files of the image %s: %w", d.Name, err)
		}
		layers = append(layers, image.Layer{Files: files, History: "files of " + d.Name})
		entry = slices.Concat(entry, arguments)
	}
	layers = append(layers, image.Layer{Files: rootfs.Tree{rootfs.Program(d.Name, file)}, History: "/" + d.Name + " from " + d.pkg})
	return image.New(image.Spec{
		Platform: platform, Created: source.Time, Entrypoint: entry, StopSignal: d.stopSignal, Layers: layers,
		Labels: map[string]string{
			"org.opencontainers.image.title":    "Relaypool " + d.Name + ", for tests alone",
			"org.opencontainers.image.revision": source.Revision,
		},
	})
}

// withVerifyingKey adds the pool's development key; flags of the container follow.
func withVerifyingKey(_ context.Context, root string) (rootfs.Tree, []string, error) {
	key, err := os.ReadFile(filepath.Join(root, "hack", "circuit", verifyingKey))
	if err != nil {
		return nil, nil, err
	}
	return rootfs.Tree{rootfs.Text(verifyingKey, string(key))}, []string{"-vk", "/" + verifyingKey}, nil
}

// withServer adds this machine's Postgres, and says where it is.
func withServer(ctx context.Context, _ string) (rootfs.Tree, []string, error) {
	server, err := debian.FindPostgres()
	if err != nil {
		return nil, nil, err
	}
	files, err := server.Files(ctx)
	if err != nil {
		return nil, nil, err
	}
	return append(files, rootfs.Dir("var/lib/postgresql", 0o755)), []string{"-bin", server.Bin}, nil
}
