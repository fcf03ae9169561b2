package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkout copies the current source, changes included, into a new repository in folder with
// one commit, and returns that commit.
func checkout(t *testing.T, folder string) (commit string) {
	t.Helper()
	root := filepath.Join("..", "..")
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list the source: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, name), filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) { // deleted, not committed
			t.Fatalf("copy the source: %v", err)
		}
	}
	git(t, folder, "init", "-q")
	git(t, folder, "add", "-A")
	git(t, folder, "commit", "-qm", "the source as it is")
	return git(t, folder, "rev-parse", "HEAD")
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}

func git(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE="+commitTime, "GIT_AUTHOR_DATE="+commitTime)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commitTime is the time of all commits of the tests.
const commitTime = "2026-03-04T05:06:07Z"
