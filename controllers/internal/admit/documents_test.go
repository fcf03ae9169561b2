package admit_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/controllers/internal/admit"
)

// Users copy the RelayPools of the documents: the API server must accept them.
func TestRelayPoolsInTheDocsAreValid(t *testing.T) {
	t.Parallel()
	reader, err := admit.New()
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	root, read := "../../..", 0
	check := func(path string) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, example := range block.FindAllStringSubmatch(string(content), -1) {
			if !strings.Contains(example[1], "kind: RelayPool") {
				continue
			}
			pools, _, err := reader.Read(t.Context(), strings.NewReader(example[1]), "shield")
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			read += len(pools)
		}
	}
	check(filepath.Join(root, "README.md"))
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			check(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if read == 0 {
		t.Error("no document has a RelayPool: nothing was read")
	}
}
