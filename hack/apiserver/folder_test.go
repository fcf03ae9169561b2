package apiserver

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRemoveAbandoned(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	for _, name := range []string{tempPrefix + "abandoned", tempPrefix + "held", tempPrefix + "new", "another-program"} {
		write(t, filepath.Join(parent, name, "etcd", "data"))
	}
	lock, err := lockFolder(filepath.Join(parent, tempPrefix+"held"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	now := time.Now()
	for _, name := range []string{tempPrefix + "abandoned", tempPrefix + "held", "another-program"} {
		if err := os.Chtimes(filepath.Join(parent, name), now, now.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	removeAbandoned(parent, now.Add(-time.Minute))
	if diff := cmp.Diff([]string{"another-program", tempPrefix + "held", tempPrefix + "new"}, programsIn(t, parent)); diff != "" {
		t.Errorf("folders (-want +got):\n%s", diff)
	}
}

func TestOpenOfAnotherFolderIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a folder without a server was opened")
	}
}
