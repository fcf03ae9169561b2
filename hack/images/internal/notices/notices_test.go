package notices

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/images/internal/program"
)

// module writes files, and gives them as a module with these packages.
func module(t *testing.T, files map[string]string, packages ...string) program.Linked {
	t.Helper()
	m := program.Linked{Path: "example.org/m", Version: "v1.2.3", Root: t.TempDir()}
	for name, content := range files {
		file := filepath.Join(m.Root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range packages {
		m.Packages = append(m.Packages, filepath.Join(m.Root, p))
	}
	return m
}

func TestTextsAreThoseOfWhatIsLinked(t *testing.T) {
	t.Parallel()
	m := module(t, map[string]string{
		"LICENSE.md": "a", "notice": "b", "LICENCE-MIT": "c", "PATENTS": "d", "Copying": "e",
		"license.go": "package m", "licensed.txt": "no", "README.md": "no", "noticeable": "no",
		"third_party/LICENSE": "f", "third_party/one/License.txt": "g", "third_party/one/one.go": "package one",
		"third_party/two/LICENSE": "not linked", "licenses/x": "no",
	}, ".", "third_party/one")
	got, err := Of(m)
	if err != nil {
		t.Fatal(err)
	}
	want := Module{"example.org/m", "v1.2.3", []Text{
		{"Copying", "e"},
		{"LICENCE-MIT", "c"},
		{"LICENSE.md", "a"},
		{"PATENTS", "d"},
		{"notice", "b"},
		{"third_party/LICENSE", "f"},
		{"third_party/one/License.txt", "g"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	m.Packages = []string{t.TempDir()}
	if _, err := Of(m); err == nil || !strings.Contains(err.Error(), "is not in the module's") {
		t.Errorf("a package outside of its module: %v", err)
	}
}

func TestThePageHasEveryModuleOnce(t *testing.T) {
	t.Parallel()
	mit, bsd := []Text{{"LICENSE", "MIT\n\n"}}, []Text{{"LICENSE", "BSD"}, {"PATENTS", "none"}}
	modules := []Module{{"c", "v3", mit}, {"b", "v2", bsd}, {"a", "v1", mit}, {"d", "v4", nil}}
	got, err := Write("All of it.\n", modules, []string{"d"})
	if err != nil {
		t.Fatal(err)
	}
	want := "All of it.\n\n" + wide + "\na v1\nc v3\n" + narrow + "\nLICENSE\n\nMIT\n\n" +
		wide + "\nb v2\n" + narrow + "\nLICENSE\n\nBSD\n" + narrow + "\nPATENTS\n\nnone\n\n" +
		wide + "\nd v4\n\nIt comes without a text of its licence.\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the page (-want +got):\n%s", diff)
	}
	if _, err := Write("", modules, nil); err == nil || !strings.Contains(err.Error(), "d v4 has no file with its licence") {
		t.Errorf("a module without a licence is taken: %v", err)
	}
}
