// Package image makes an OCI image from files and a configuration. The same input
// gives the same digest.
package image

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/relaypool/relaypool/hack/images/internal/program"
	"github.com/relaypool/relaypool/hack/images/internal/rootfs"
)

// SearchPath is what Docker gives every image that is built from nothing; ours
// have it as well, so that both ways make the same image.
const SearchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Spec describes an image. Platform, Created, Entrypoint and Layers are required.
type Spec struct {
	Platform program.Platform
	// Created is the time of the image and of each of its files.
	Created    time.Time
	Entrypoint []string
	// Environment follows SearchPath, as NAME=value.
	Environment []string
	// StopSignal ends the program; SIGTERM when empty.
	StopSignal string
	Labels     map[string]string
	Layers     []Layer
}

// Layer is files and the sentence that the image's history has of them.
type Layer struct {
	Files   rootfs.Tree
	History string
}

// User is what the images run as, user and group.
func User() string { return fmt.Sprintf("%d:%d", rootfs.Nonroot, rootfs.Nonroot) }

// New makes the image in memory.
func New(s Spec) (v1.Image, error) {
	if s.Platform == (program.Platform{}) || s.Created.IsZero() || len(s.Entrypoint) == 0 || len(s.Layers) == 0 {
		return nil, errors.New("make an image: platform, time, entry point and layers are required")
	}
	created := v1.Time{Time: s.Created.UTC().Truncate(time.Second)}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	config := &v1.ConfigFile{
		OS: s.Platform.OS, Architecture: s.Platform.Architecture, Created: created,
		Config: v1.Config{
			Entrypoint: s.Entrypoint, User: User(), WorkingDir: "/", StopSignal: s.StopSignal,
			Env: append([]string{SearchPath}, s.Environment...), Labels: maps.Clone(s.Labels),
		},
		RootFS: v1.RootFS{Type: "layers"},
	}
	img, err := mutate.ConfigFile(base, config)
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	for _, l := range s.Layers {
		layer, err := l.compress(created.Time)
		if err != nil {
			return nil, fmt.Errorf("make an image: %w", err)
		}
		img, err = mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: l.History}})
		if err != nil {
			return nil, fmt.Errorf("make an image: %w", err)
		}
	}
	return img, nil
}

// compress packs the layer once, and keeps it in memory packed.
func (l Layer) compress(at time.Time) (v1.Layer, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if err := errors.Join(l.Files.Tar(zip, at), zip.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}
