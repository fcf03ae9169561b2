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
	"github.com/google/go-containerregistry/pkg/v1/remote"
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

// Tagged is what is published under a name: an image for several platforms, which is
// an Index, or something for all of them, such as a chart, which is an Image. The
// other one is nil.
type Tagged struct {
	Tag   name.Tag
	Index v1.ImageIndex
	Image v1.Image
}

// Content is what a registry has under a name.
type Content interface {
	remote.Taggable
	partial.Describable
}

// Content gives the one that there is.
func (t Tagged) Content() Content {
	if t.Index != nil {
		return t.Index
	}
	return t.Image
}

// WriteLayout writes an OCI layout, whose folder it makes anew.
func WriteLayout(folder string, all []Tagged) error {
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("write the OCI layout: %w", err)
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("write the OCI layout: %w", err)
	}
	for _, t := range all {
		var err error
		if named := layout.WithAnnotations(annotations(t.Tag)); t.Index != nil {
			err = path.AppendIndex(t.Index, named)
		} else {
			err = path.AppendImage(t.Image, named)
		}
		if err != nil {
			return fmt.Errorf("write %s into the OCI layout: %w", t.Tag, err)
		}
	}
	return nil
}

// ReadLayout reads what WriteLayout wrote, or another program with the same
// annotations.
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
			return nil, fmt.Errorf("read the OCI layout %s: %s without the annotation %s: %w", folder, descriptor.Digest, containerdName, err)
		}
		t := Tagged{Tag: tag}
		if descriptor.MediaType.IsIndex() {
			t.Index, err = root.ImageIndex(descriptor.Digest)
		} else {
			t.Image, err = root.Image(descriptor.Digest)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s from the OCI layout: %w", tag, err)
		}
		all = append(all, t)
	}
	return all, nil
}
