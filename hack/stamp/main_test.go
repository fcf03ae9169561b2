package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTwoClonesOfACommitHaveTheSameTimes(t *testing.T) {
	t.Parallel()
	origin := repository(t)
	one, other := clone(t, origin), clone(t, origin)
	// As if it had been made at another time.
	later := time.Now().Add(-time.Hour)
	for _, name := range []string{"a.txt", "sub", "sub/b.txt", "sub/deep/c.txt"} {
		if err := os.Chtimes(filepath.Join(other, name), later, later); err != nil {
			t.Fatal(err)
		}
	}
	stampOf(t, one, 4, 0)
	stampOf(t, other, 4, 0)
	times := timesOf(t, one)
	if diff := cmp.Diff(times, timesOf(t, other)); diff != "" {
		t.Errorf("times (-one +other):\n%s", diff)
	}
	if times["a.txt"].Equal(times["sub/b.txt"]) {
		t.Error("two contents have the same time")
	}
	if !times["a.txt"].Equal(times["sub/deep/c.txt"]) {
		t.Error("the same content has two times")
	}
	stampOf(t, one, 4, 0)
	if diff := cmp.Diff(times, timesOf(t, one)); diff != "" {
		t.Errorf("times after a second run (-before +after):\n%s", diff)
	}
}

func TestWhatDiffersFromTheCommitKeepsItsTime(t *testing.T) {
	t.Parallel()
	root := clone(t, repository(t))
	stampOf(t, root, 4, 0)
	before := timesOf(t, root)
	// Of the same size.
	write(t, root, "sub/b.txt", "BBB")
	write(t, root, "new.txt", "not in git")
	stampOf(t, root, 3, 1)
	after := timesOf(t, root)
	if time.Since(after["sub/b.txt"]) > time.Hour {
		t.Errorf("a changed file has the time %s, want that of its change", after["sub/b.txt"])
	}
	if !after["a.txt"].Equal(before["a.txt"]) {
		t.Error("an unchanged file has another time")
	}
	command(t, root, "git", "commit", "-qam", "a change")
	stampOf(t, root, 4, 0)
	if now := timesOf(t, root)["sub/b.txt"]; now.Equal(before["sub/b.txt"]) || time.Since(now) < time.Hour {
		t.Errorf("a file with another content, committed, has the time %s, before %s", now, before["sub/b.txt"])
	}
}

func TestStampRefusesAFolderThatIsNoClone(t *testing.T) {
	t.Parallel()
	if _, _, err := stamp(t.Context(), t.TempDir()); err == nil {
		t.Error("no error, want one")
	}
}

func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	command(t, root, "git", "init", "-q", ".")
	write(t, root, "a.txt", "aaa")
	write(t, root, "sub/b.txt", "bbb")
	write(t, root, "sub/deep/c.txt", "aaa")
	write(t, root, "a name with spaces", "d")
	if err := os.Symlink("a.txt", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	identify(t, root)
	command(t, root, "git", "add", "-A")
	command(t, root, "git", "commit", "-qm", "first")
	return root
}

func clone(t *testing.T, origin string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "clone")
	command(t, ".", "git", "clone", "-q", origin, root)
	identify(t, root)
	return root
}

func identify(t *testing.T, root string) {
	t.Helper()
	command(t, root, "git", "config", "user.name", "test")
	command(t, root, "git", "config", "user.email", "test@example.org")
}

func command(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func stampOf(t *testing.T, root string, stamped, kept int) {
	t.Helper()
	s, k, err := stamp(t.Context(), root)
	if err != nil || s != stamped || k != kept {
		t.Fatalf("stamped %d files and kept %d, %v, want %d and %d", s, k, err, stamped, kept)
	}
}

func timesOf(t *testing.T, root string) map[string]time.Time {
	t.Helper()
	times := map[string]time.Time{}
	for _, name := range []string{"a.txt", "sub", "sub/b.txt", "sub/deep", "sub/deep/c.txt", "a name with spaces"} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		times[name] = info.ModTime()
	}
	return times
}
