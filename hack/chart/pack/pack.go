// Package pack packages the chart as helm package and helm push do. One commit always gives
// the same bytes, so that a repeated release does not replace published files.
package pack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/registry"
)

// Archive packages the chart of a folder into the folder out, with all times set to at, and
// returns the archive's path.
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
	return file, nil
}

// Layout writes an archive into an OCI layout, in the form in which helm push would publish
// it below repository, for instance ghcr.io/relaypool/charts. It replaces the layout's
// folder, and returns the chart's name and digest.
func Layout(archive, repository, folder string, at time.Time) (tag name.Tag, digest v1.Hash, err error) {
	wrap := func(err error) (name.Tag, v1.Hash, error) {
		return tag, digest, fmt.Errorf("write the OCI layout of the chart: %w", err)
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		return wrap(err)
	}
	c, err := loader.LoadArchive(bytes.NewReader(content))
	if err != nil {
		return wrap(err)
	}
	tag, err = name.NewTag(repository+"/"+c.Metadata.Name+":"+strings.ReplaceAll(c.Metadata.Version, "+", "_"), name.StrictValidation)
	if err != nil {
		return wrap(err)
	}
	if err := os.RemoveAll(folder); err != nil {
		return wrap(err)
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return wrap(err)
	}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Layers: make([]v1.Descriptor, 1), Annotations: map[string]string{
		"org.opencontainers.image.title":       c.Metadata.Name,
		"org.opencontainers.image.version":     c.Metadata.Version,
		"org.opencontainers.image.description": c.Metadata.Description,
		"org.opencontainers.image.url":         c.Metadata.Home,
		"org.opencontainers.image.source":      c.Metadata.Sources[0],
		"org.opencontainers.image.authors":     c.Metadata.Maintainers[0].Name,
		"org.opencontainers.image.created":     at.UTC().Format(time.RFC3339),
	}}
	if manifest.Layers[0], err = write(path, registry.ChartLayerMediaType, content); err != nil {
		return wrap(err)
	}
	if manifest.Config, err = writeJSON(path, registry.ConfigMediaType, c.Metadata); err != nil {
		return wrap(err)
	}
	published, err := writeJSON(path, types.OCIManifestSchema1, manifest)
	if err != nil {
		return wrap(err)
	}
	// `images push` finds the name by these annotations.
	published.Annotations = map[string]string{"io.containerd.image.name": tag.Name(), "org.opencontainers.image.ref.name": tag.TagStr()}
	if err := path.AppendDescriptor(published); err != nil {
		return wrap(err)
	}
	return tag, published.Digest, nil
}

func writeJSON(to layout.Path, mediaType types.MediaType, value any) (v1.Descriptor, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return write(to, mediaType, content)
}

func write(to layout.Path, mediaType types.MediaType, content []byte) (v1.Descriptor, error) {
	digest, size, err := v1.SHA256(bytes.NewReader(content))
	if err != nil {
		return v1.Descriptor{}, err
	}
	return v1.Descriptor{MediaType: mediaType, Size: size, Digest: digest}, to.WriteBlob(digest, io.NopCloser(bytes.NewReader(content)))
}
