// Package release puts onto a cluster what its user would: images, and the chart
// by the helm command.
package release

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// manifestFile lists the images of a docker-archive.
const manifestFile = "manifest.json"

// manifest is one image of a docker-archive.
type manifest struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// Tag reads the reference that an image archive gives its image, such as
// ghcr.io/relaypool/relay:0.1.0.
func Tag(archive string) (string, error) {
	file, err := os.Open(archive)
	if err != nil {
		return "", fmt.Errorf("open an image archive: %w", err)
	}
	defer func() { _ = file.Close() }() // read only
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return "", fmt.Errorf("%s has no %s: expected a docker-archive, as make images writes it", archive, manifestFile)
		}
		if err != nil {
			return "", fmt.Errorf("read %s: %w", archive, err)
		}
		if header.Name != manifestFile {
			continue
		}
		m, err := parseManifest(reader, archive)
		if err != nil {
			return "", err
		}
		return m.RepoTags[0], nil
	}
}

func parseManifest(r io.Reader, archive string) (*manifest, error) {
	var images []manifest
	if err := json.NewDecoder(r).Decode(&images); err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", manifestFile, archive, err)
	}
	if len(images) != 1 || len(images[0].RepoTags) != 1 {
		return nil, fmt.Errorf("%s holds %d images, expected one with one tag", archive, len(images))
	}
	return &images[0], nil
}

// Retag copies an image archive under another reference: the same build with
// another tag, as the next release is to a fleet.
func Retag(from, to, reference string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("open an image archive: %w", err)
	}
	defer func() { _ = in.Close() }() // read only
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make an image archive: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	writer := tar.NewWriter(out)
	for reader := tar.NewReader(in); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return writer.Close()
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", from, err)
		}
		if err := copyEntry(writer, reader, header, from, reference); err != nil {
			return err
		}
	}
}

func copyEntry(w *tar.Writer, r *tar.Reader, header *tar.Header, from, reference string) error {
	switch header.Name {
	case "repositories", "index.json", "oci-layout":
		// Other lists of the same tags, and what says that they are there: without
		// them an archive is read by its manifest.
		return nil
	case manifestFile:
		m, err := parseManifest(r, from)
		if err != nil {
			return err
		}
		m.RepoTags = []string{reference}
		text, err := json.Marshal([]manifest{*m})
		if err != nil {
			return fmt.Errorf("encode %s: %w", manifestFile, err)
		}
		header.Size = int64(len(text))
		if err := w.WriteHeader(header); err != nil {
			return fmt.Errorf("write an image archive: %w", err)
		}
		_, err = w.Write(text)
		return err
	}
	if err := w.WriteHeader(header); err != nil {
		return fmt.Errorf("write an image archive: %w", err)
	}
	if _, err := io.Copy(w, r); err != nil {
		return fmt.Errorf("copy %s of %s: %w", header.Name, from, err)
	}
	return nil
}
