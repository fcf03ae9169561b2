// Package rootfs describes the files of an image and writes them as the tar of a
// layer or as a folder. The same files give the same bytes, wherever and whenever
// they are written.
package rootfs

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File is one entry of an image. Its path is slash-separated, without the slash
// that it begins with in a container. Owner and group are root always.
type File struct {
	Path string
	// Mode are the permission bits, with fs.ModeSticky where wanted, and
	// fs.ModeDir or fs.ModeSymlink for what is no regular file.
	Mode fs.FileMode
	// Target is where a symbolic link leads to.
	Target string
	// Content is that of a regular file, unless Source names the file on this
	// machine that has it.
	Content []byte
	Source  string
}

// Tree is the files of an image or of one layer, in any order. Folders that are
// missing are added, open to everybody and writable by root.
type Tree []File

// Dir is a folder with permission bits, and fs.ModeSticky where wanted.
func Dir(name string, mode fs.FileMode) File { return File{Path: name, Mode: fs.ModeDir | mode} }

// Text is a file that everybody may read.
func Text(name, content string) File {
	return File{Path: name, Mode: 0o644, Content: []byte(content)}
}

// Program is a file of this machine that everybody may run.
func Program(name, source string) File { return File{Path: name, Mode: 0o755, Source: source} }

// complete gives the entries in the order of their paths, with every folder
// before what is in it.
func (t Tree) complete() (Tree, error) {
	known := map[string]bool{".": true}
	var all Tree
	for _, f := range t {
		if !fs.ValidPath(f.Path) || f.Path == "." {
			return nil, fmt.Errorf("image file %q: want a clean path without a slash at its start", f.Path)
		}
		if known[f.Path] {
			return nil, fmt.Errorf("image file %q is there twice: name each file once", f.Path)
		}
		known[f.Path] = true
		all = append(all, f)
	}
	folders := map[string]bool{".": true}
	for _, f := range t {
		folders[f.Path] = f.Mode.IsDir()
	}
	for _, f := range t {
		for dir := path.Dir(f.Path); !folders[dir]; dir = path.Dir(dir) {
			if known[dir] {
				return nil, fmt.Errorf("image file %q is in %q, which is not a folder", f.Path, dir)
			}
			folders[dir] = true
			all = append(all, Dir(dir, 0o755))
		}
	}
	slices.SortFunc(all, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return all, nil
}

// Tar writes the files as a layer whose entries all have the given time, in whole
// seconds.
func (t Tree) Tar(w io.Writer, at time.Time) error {
	all, err := t.complete()
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	for _, f := range all {
		if err := f.tar(out, at); err != nil {
			return fmt.Errorf("write %s into the layer: %w", f.Path, err)
		}
	}
	return out.Close()
}

func (f File) tar(out *tar.Writer, at time.Time) error {
	header := &tar.Header{
		Name: f.Path, Mode: int64(f.Mode.Perm()), ModTime: at.UTC().Truncate(time.Second), Format: tar.FormatPAX, Typeflag: tar.TypeReg,
	}
	if f.Mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	switch f.Mode.Type() {
	case fs.ModeDir:
		header.Typeflag, header.Name = tar.TypeDir, f.Path+"/"
		return out.WriteHeader(header)
	case fs.ModeSymlink:
		header.Typeflag, header.Linkname = tar.TypeSymlink, f.Target
		return out.WriteHeader(header)
	}
	content, size, err := f.open()
	if err != nil {
		return err
	}
	header.Size = size
	if err := out.WriteHeader(header); err != nil {
		return errors.Join(err, content.Close())
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, content.Close())
}

func (f File) open() (io.ReadCloser, int64, error) {
	if f.Source == "" {
		return io.NopCloser(strings.NewReader(string(f.Content))), int64(len(f.Content)), nil
	}
	file, err := os.Open(f.Source)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", f.Source)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// WriteTo writes the files below a folder, which it makes, and in which none of
// them may be yet. It is for build tools
// that copy files into an image; who owns the files there is up to them.
func (t Tree) WriteTo(folder string) error {
	all, err := t.complete()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // an image's files are open to everybody
		return fmt.Errorf("write the image's files: %w", err)
	}
	for _, f := range all {
		if err := f.write(filepath.Join(folder, filepath.FromSlash(f.Path))); err != nil {
			return fmt.Errorf("write the image's files: %w", err)
		}
	}
	return nil
}

func (f File) write(name string) error {
	switch f.Mode.Type() {
	case fs.ModeDir:
		if err := os.Mkdir(name, 0o755); err != nil { //nolint:gosec // an image's folders are open to everybody
			return err
		}
		return os.Chmod(name, f.Mode.Perm()|f.Mode&fs.ModeSticky)
	case fs.ModeSymlink:
		return os.Symlink(f.Target, name)
	}
	content, _, err := f.open()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, f.Mode.Perm())
	if err != nil {
		return errors.Join(err, content.Close())
	}
	_, err = io.Copy(file, content)
	// The process's own mask may have taken bits away.
	return errors.Join(err, content.Close(), file.Chmod(f.Mode.Perm()), file.Close())
}
