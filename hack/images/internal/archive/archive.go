// Package archive writes images as one file that every engine loads, and as the
// folder that a release is pushed from.
package archive

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The annotations that engines read an image's name from.
const (
	// containerdName is containerd's, with registry.
	containerdName = "io.containerd.image.name"
	// refName is OCI's own.
	refName = "org.opencontainers.image.ref.name"
)

// blobs is the folder of everything that has a digest.
const blobs = "blobs/sha256/"

// dockerManifest is an entry of manifest.json, which Docker before version 25
// reads.
type dockerManifest struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// Write writes an image under a name to a file, as `docker save` does: an OCI
// layout, so that containerd keeps the digest, with Docker's own manifest beside.
func Write(file string, tag name.Tag, img v1.Image) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = errors.Join(fmt.Errorf("write the image %s: %w", file, err), os.Remove(file))
		}
	}()
	w := &writer{Writer: tar.NewWriter(out), written: map[string]bool{}}
	if err := w.image(tag, img); err != nil {
		return err
	}
	return w.Close()
}

// writer writes entries without owners or times. Equal layers are written once.
type writer struct {
	*tar.Writer
	written map[string]bool
}

func (w *writer) image(tag name.Tag, img v1.Image) error {
	descriptor, err := partial.Descriptor(img)
	if err != nil {
		return err
	}
	descriptor.ArtifactType = "" // an image is one by its configuration
	descriptor.Annotations = annotations(tag)
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{*descriptor}})
	if err != nil {
		return err
	}
	manifest, err := img.RawManifest()
	if err != nil {
		return err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return err
	}
	configName, err := img.ConfigName()
	if err != nil {
		return err
	}
	docker := dockerManifest{Config: blobs + configName.Hex, RepoTags: []string{familiar(tag)}}
	if err := errors.Join(
		w.bytes("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)),
		w.bytes(blobs+descriptor.Digest.Hex, manifest),
		w.bytes(docker.Config, config),
	); err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		name, err := w.layer(layer)
		if err != nil {
			return err
		}
		docker.Layers = append(docker.Layers, name)
	}
	list, err := json.Marshal([]dockerManifest{docker})
	if err != nil {
		return err
	}
	return errors.Join(w.bytes("index.json", index), w.bytes("manifest.json", list))
}

// annotations name an image as containerd and OCI's tools read it.
func annotations(tag name.Tag) map[string]string {
	full := tag.Name()
	if path, found := strings.CutPrefix(full, name.DefaultRegistry+"/"); found {
		full = "docker.io/" + path // as everybody but the registry itself calls it
	}
	return map[string]string{containerdName: full, refName: tag.TagStr()}
}

// familiar is how people write a name: without the registry when it is Docker's.
func familiar(tag name.Tag) string {
	if tag.RegistryStr() == name.DefaultRegistry {
		return tag.RepositoryStr() + ":" + tag.TagStr()
	}
	return tag.Name()
}

func (w *writer) layer(layer v1.Layer) (string, error) {
	digest, err := layer.Digest()
	if err != nil {
		return "", err
	}
	size, err := layer.Size()
	if err != nil {
		return "", err
	}
	content, err := layer.Compressed()
	if err != nil {
		return "", err
	}
	file := blobs + digest.Hex
	return file, errors.Join(w.entry(file, size, content), content.Close())
}

func (w *writer) bytes(file string, content []byte) error {
	return w.entry(file, int64(len(content)), bytes.NewReader(content))
}

func (w *writer) entry(file string, size int64, content io.Reader) error {
	if w.written[file] {
		return nil
	}
	w.written[file] = true
	if err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: size, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := io.Copy(w, content)
	return err
}
