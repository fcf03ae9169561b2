package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/commandline"
)

// writeArchive writes files below a folder into a compressed archive, which only its owner may
// read.
func writeArchive(path, folder string, files map[string][]byte, at time.Time) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("%w: --file: %w", commandline.ErrUsage, err)
	}
	// A file that was there before may have another mode.
	if err := errors.Join(f.Chmod(0o600), pack(f, folder, files, at), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func pack(w io.Writer, folder string, files map[string][]byte, at time.Time) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: folder + "/" + name, Mode: 0o600, Size: int64(len(files[name])), ModTime: at}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(files[name]); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}
