package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// load reads the only image of an archive as containerd does.
func load(t *testing.T, archive string) v1.Image {
	t.Helper()
	folder := t.TempDir()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}()
	unpack(t, file, folder)
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("%s has %d images, want 1", archive, len(manifest.Manifests))
	}
	img, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// unpack writes a tar's folders, files and links below a folder.
func unpack(t *testing.T, content io.Reader, folder string) {
	t.Helper()
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(folder, h.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = errors.Join(os.MkdirAll(name, 0o755), os.Chmod(name, h.FileInfo().Mode()))
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, name)
		default:
			err = writeFile(name, h.FileInfo().Mode().Perm(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func writeFile(name string, mode os.FileMode, content io.Reader) error {
	out, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Chmod(mode), out.Close())
}
