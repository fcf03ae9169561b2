// Package debian takes the files of an image from the Debian packages that are
// installed on this machine.
package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/relaypool/relaypool/hack/images/internal/rootfs"
)

// Files collects files of this machine with the shared libraries that they link,
// each at the path that it has here.
type Files struct {
	// sources has for each path, as it is in the image, the file to take.
	sources map[string]string
}

// New makes an empty collection.
func New() *Files { return &Files{sources: map[string]string{}} }

// Add takes a file, or a folder with all in it.
func (f *Files) Add(name string) error {
	err := filepath.WalkDir(name, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return f.take(file)
	})
	if err != nil {
		return fmt.Errorf("collect %s: %w", name, err)
	}
	return nil
}

// AddProgram takes a program or a shared library and what the dynamic linker loads
// with it.
func (f *Files) AddProgram(ctx context.Context, name string) error {
	if err := f.take(name); err != nil {
		return fmt.Errorf("collect %s: %w", name, err)
	}
	list := exec.CommandContext(ctx, "ldd", name)
	var complaint bytes.Buffer
	list.Stderr = &complaint
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the libraries of %s: %w: %s", name, err, bytes.TrimSpace(complaint.Bytes()))
	}
	libraries, err := parseLdd(string(out))
	if err != nil {
		return fmt.Errorf("list the libraries of %s: %w", name, err)
	}
	for _, library := range libraries {
		if err := f.take(library); err != nil {
			return fmt.Errorf("collect a library of %s: %w", name, err)
		}
	}
	return nil
}

// parseLdd reads the files from what ldd prints: "name => /file (address)", or the
// file alone for the linker itself.
func parseLdd(text string) ([]string, error) {
	var libraries []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasSuffix(line, "not found") {
			return nil, fmt.Errorf("%s: install the package that has it", line)
		}
		if _, after, found := strings.Cut(line, " => "); found {
			line = after
		}
		if file, _, found := strings.Cut(line, " ("); found && strings.HasPrefix(file, "/") {
			libraries = append(libraries, file)
		}
	}
	if len(libraries) == 0 {
		return nil, errors.New("found none: the program is static")
	}
	return libraries, nil
}

// take notes one file. Where it is a link, the image gets what the link leads to.
func (f *Files) take(name string) error {
	source, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	f.sources[strings.TrimPrefix(filepath.Clean(name), "/")] = source
	return nil
}

// Tree gives the collection as files of an image, with the modes that they have
// here but for write permissions of others.
func (f *Files) Tree() (rootfs.Tree, error) {
	var tree rootfs.Tree
	for _, name := range slices.Sorted(maps.Keys(f.sources)) {
		info, err := os.Stat(f.sources[name])
		if err != nil {
			return nil, fmt.Errorf("collect /%s: %w", name, err)
		}
		mode := fs.FileMode(0o644)
		if info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		tree = append(tree, rootfs.File{Path: name, Mode: mode, Source: f.sources[name]})
	}
	return tree, nil
}
