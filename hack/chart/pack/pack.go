// Package pack packages the chart as helm package does, and as what helm push would
// publish: the same to the byte whenever and wherever that is done from one commit. Each
// run of Helm's own commands gives another digest, because it takes the times of the
// checkout's files, so that a release that is run again would replace what it published.
package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	inmemory "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/registry"
)

// Archive packages the chart of a folder into the folder out, with all times at, and
// gives the archive's path.
func Archive(folder, out string, at time.Time) (string, error) {
	if err := os.MkdirAll(out, 0o750); err != nil {
		return "", fmt.Errorf("package the chart: %w", err)
	}
	p := action.NewPackage()
	p.Destination, p.SourceDateEpoch = out, &at
	file, err := p.Run(folder, nil)
	if err != nil {
		return "", fmt.Errorf("package the chart: %w", err)
	}
	// Helm takes this for the time when the chart was made, too.
	if err := os.Chtimes(file, at, at); err != nil {
		return "", fmt.Errorf("package the chart: %w", err)
	}
	return file, nil
}

// The annotations by which hack/images push finds the name of what it publishes.
const (
	containerdName = "io.containerd.image.name"
	refName        = "org.opencontainers.image.ref.name"
)

// Layout writes what helm push would publish of an archive below a registry's folder,
// such as ghcr.io/relaypool/charts, into an OCI layout, whose folder it makes anew. It
// gives the name and the digest.
func Layout(ctx context.Context, archive, repository, folder string) (tag name.Tag, digest v1.Hash, err error) {
	wrap := func(err error) (name.Tag, v1.Hash, error) {
		return tag, digest, fmt.Errorf("write the OCI layout of the chart: %w", err)
	}
	c, err := loader.Load(archive)
	if err != nil {
		return wrap(err)
	}
	at := c.Metadata.Name + ":" + strings.ReplaceAll(c.Metadata.Version, "+", "_")
	if tag, err = name.NewTag(repository+"/"+at, name.StrictValidation); err != nil {
		return wrap(err)
	}
	// Helm's own manifest, by Helm's own push, to a registry that ends with this call.
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return wrap(err)
	}
	server := &http.Server{
		Handler:           inmemory.New(inmemory.Logger(log.New(io.Discard, "", 0))),
		ReadHeaderTimeout: time.Minute,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer func() {
		err = errors.Join(err, server.Close())
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
	}()
	ref := listener.Addr().String() + "/" + at
	if err := push(archive, ref); err != nil {
		return wrap(err)
	}
	local, err := name.NewTag(ref)
	if err != nil {
		return wrap(err)
	}
	img, err := remote.Image(local, remote.WithContext(ctx))
	if err != nil {
		return wrap(err)
	}
	if digest, err = img.Digest(); err != nil {
		return wrap(err)
	}
	if err := os.RemoveAll(folder); err != nil {
		return wrap(err)
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return wrap(err)
	}
	if err := path.AppendImage(img, layout.WithAnnotations(map[string]string{containerdName: tag.Name(), refName: tag.TagStr()})); err != nil {
		return wrap(err)
	}
	return tag, digest, nil
}

// push does what helm push does.
func push(archive, ref string) (err error) {
	content, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	info, err := os.Stat(archive)
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "relaypool-chart-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	client, err := registry.NewClient(
		registry.ClientOptPlainHTTP(), registry.ClientOptWriter(io.Discard),
		registry.ClientOptCredentialsFile(filepath.Join(home, "nobody.json")),
	)
	if err != nil {
		return err
	}
	_, err = client.Push(content, ref, registry.PushOptCreationTime(info.ModTime().UTC().Format(time.RFC3339)))
	return err
}
