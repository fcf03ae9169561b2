// Package sources is for tests whose result depends on sources that they do not
// import, because they have the go command build or list them.
package sources

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Read looks at go.mod, go.sum and every folder below the named ones, all by path
// from root, the repository's folder. `go test` caches a result by what the test
// itself has opened, and what the go command reads for it does not count: without
// this a test that builds a program would pass, from the cache, whatever becomes
// of the program. It has to be called within a test.
func Read(root string, folders ...string) error {
	for _, file := range []string{"go.mod", "go.sum"} {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			return fmt.Errorf("read the sources: %w", err)
		}
	}
	for _, folder := range folders {
		// Opening a folder counts all that is in it, by name, size and time.
		err := filepath.WalkDir(filepath.Join(root, folder), func(_ string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") {
				return filepath.SkipDir
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("read the sources: %w", err)
		}
	}
	return nil
}
