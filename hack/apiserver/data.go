package apiserver

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// unpack writes the files of an archive, in tar and gzip, to a folder that is
// not there yet.
func unpack(archive, folder string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("unpack %s: %w", archive, err)
		}
	}()
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	// Nothing of the archive is written elsewhere, whatever it names.
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for entries := tar.NewReader(plain); ; {
		entry, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case entry.Typeflag != tar.TypeReg:
			continue
		}
		if err := extract(root, filepath.Clean(entry.Name), entries); err != nil {
			return err
		}
	}
}

func extract(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
