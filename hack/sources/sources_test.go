package sources

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A module with a test that builds nothing it imports: `go test` must run it
// anew when what it reads has changed, and only then.
func TestAChangedSourceRunsTheTestAnew(t *testing.T) {
	t.Parallel()
	if err := Read(filepath.Join("..", ".."), "hack/sources"); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("sources.go")
	if err != nil {
		t.Fatal(err)
	}
	m := module{t, t.TempDir()}
	m.write("go.mod", "module example.org/m\n\ngo 1.26\n")
	m.write("go.sum", "")
	m.write("hack/sources/sources.go", string(source))
	m.write("program/deep/main.go", "package main\n\nfunc main() {}\n")
	m.write("program/.cache/main.go", "package main\n")
	m.write("it/it_test.go", `package it

import (
	"testing"

	"example.org/m/hack/sources"
)

func Test(t *testing.T) {
	if err := sources.Read("..", "program"); err != nil {
		t.Fatal(err)
	}
}
`)
	if m.cached() {
		t.Fatal("the first run came from the cache")
	}
	if !m.cached() {
		t.Error("a run after which nothing changed did not come from the cache")
	}
	for _, change := range []struct {
		what, file, content string
		want                bool // whether the result still holds
	}{
		{"a source deep below", "program/deep/main.go", "package main\n\nfunc main() { println() }\n", false},
		{"a new source", "program/deep/more.go", "package main\n", false},
		{"a dependency", "go.sum", "\n", false},
		{"what a tool keeps there", "program/.cache/main.go", "package main // other\n", true},
	} {
		m.write(change.file, change.content)
		if got := m.cached(); got != change.want {
			t.Errorf("after a change of %s the result came from the cache: %t, want %t", change.what, got, change.want)
		}
	}
}

func TestReadRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	if err := Read(filepath.Join("..", ".."), "hack/nowhere"); err == nil {
		t.Error("a folder that does not exist: no error")
	}
	if err := Read(t.TempDir()); err == nil {
		t.Error("a root without go.mod: no error")
	}
}

type module struct {
	*testing.T
	root string
}

// write writes a file and makes it old: the go command trusts no result that rests
// on a file which is younger than two seconds.
func (m module) write(name, content string) {
	m.Helper()
	path := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		m.Fatal(err)
	}
	m.age()
}

// age makes every file and folder old.
func (m module) age() {
	m.Helper()
	old := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	err := filepath.WalkDir(m.root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		m.Fatal(err)
	}
}

// cached runs the module's test and tells whether its result was known.
func (m module) cached() bool {
	m.Helper()
	run := exec.CommandContext(m.Context(), "go", "test", "./it")
	run.Dir, run.Env = m.root, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	output, err := run.CombinedOutput()
	if err != nil {
		m.Fatalf("%v: %s", err, output)
	}
	return strings.Contains(string(output), "(cached)")
}
