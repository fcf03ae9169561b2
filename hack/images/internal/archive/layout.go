package archive

import (
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Index joins one image for several platforms into what a registry serves under
// one name. The order of the images is that of the index.
func Index(images ...v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, img := range images {
		config, err := img.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("join images: %w", err)
		}
		descriptor, err := partial.Descriptor(img)
		if err != nil {
			return nil, fmt.Errorf("join images: %w", err)
		}
		descriptor.Platform = &v1.Platform{OS: config.OS, Architecture: config.Architecture}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: *descriptor})
	}
	return index, nil
}

// Tagged is an index under the name that it is published as.
type Tagged struct {
	Tag   name.Tag
	Index v1.ImageIndex
}

// WriteLayout writes indexes into an OCI layout, whose folder it makes anew.
func WriteLayout(folder string, indexes []Tagged) error {
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("write the OCI layout: %w", err)
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("write the OCI layout: %w", err)
	}
	for _, t := range indexes {
		if err := path.AppendIndex(t.Index, layout.WithAnnotations(annotations(t.Tag))); err != nil {
			return fmt.Errorf("write %s into the OCI layout: %w", t.Tag, err)
		}
	}
	return nil
}

// ReadLayout reads what WriteLayout wrote.
func ReadLayout(folder string) ([]Tagged, error) {
	path, err := layout.FromPath(folder)
	if err != nil {
		return nil, fmt.Errorf("read the OCI layout %s: %w", folder, err)
	}
	root, err := path.ImageIndex()
	if err != nil {
		return nil, fmt.Errorf("read the OCI layout %s: %w", folder, err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read the OCI layout %s: %w", folder, err)
	}
	var all []Tagged
	for _, descriptor := range manifest.Manifests {
		tag, err := name.NewTag(descriptor.Annotations[containerdName], name.StrictValidation)
		if err != nil {
			return nil, fmt.Errorf("read the OCI layout %s: an index without the annotation %s: %w", folder, containerdName, err)
		}
		index, err := root.ImageIndex(descriptor.Digest)
		if err != nil {
			return nil, fmt.Errorf("read %s from the OCI layout: %w", tag, err)
		}
		all = append(all, Tagged{tag, index})
	}
	return all, nil
}
