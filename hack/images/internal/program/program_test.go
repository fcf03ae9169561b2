package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPlatformsAreThoseThatImagesAreMadeFor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want Platform
		ok   bool
	}{
		"Intel and AMD":                 {"linux/amd64", Platform{"linux", "amd64"}, true},
		"Arm":                           {"linux/arm64", Platform{"linux", "arm64"}, true},
		"another system":                {"windows/amd64", Platform{}, false},
		"another processor":             {"linux/386", Platform{}, false},
		"a variant, which Go's has not": {"linux/arm64/v8", Platform{}, false},
		"nothing":                       {"", Platform{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParsePlatform(tt.text)
			if got != tt.want || (err == nil) != tt.ok {
				t.Errorf("got %v, %v, want %v and success %t", got, err, tt.want, tt.ok)
			}
			if tt.ok && got.String() != tt.text {
				t.Errorf("it is written %s", got)
			}
		})
	}
}

// repository makes one with a commit of a known time and gives its commit.
func repository(t *testing.T, folder string) string {
	t.Helper()
	run := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-03-04T05:06:07Z", "GIT_AUTHOR_DATE=2025-01-01T00:00:00Z")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.WriteFile(filepath.Join(folder, "file"), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("init", "-q")
	run("add", ".")
	run("commit", "-qm", "one")
	return run("rev-parse", "HEAD")
}

func TestTheSourceTellsItsCommitAndTime(t *testing.T) {
	t.Parallel()
	committed := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	tests := map[string]struct {
		make    func(t *testing.T, folder string) (root string)
		epoch   string
		suffix  string // of the commit
		unknown bool   // there is none
		want    time.Time
		fails   string
	}{
		"a clean clone":                         {make: asItIs, want: committed},
		"a clone with a changed file":           {make: changed, suffix: "+modified", want: committed},
		"SOURCE_DATE_EPOCH before the commit's": {make: asItIs, epoch: "86400", want: time.Unix(86400, 0)},
		"an archive of the source, with a time": {make: archived, epoch: "86400", unknown: true, want: time.Unix(86400, 0)},
		"an archive of the source alone":        {make: archived, fails: "SOURCE_DATE_EPOCH"},
		"an archive in somebody's repository":   {make: below, epoch: "1", unknown: true, want: time.Unix(1, 0)},
		"a time that is none":                   {make: asItIs, epoch: "yesterday", fails: `is "yesterday", want seconds`},
		"a time before all computers":           {make: asItIs, epoch: "-1", fails: "want seconds"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			commit := repository(t, folder)
			got, err := ReadSource(t.Context(), tt.make(t, folder), tt.epoch)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Fatalf("error is %v, want one with %q", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := commit + tt.suffix
			if tt.unknown {
				want = "unknown"
			}
			if got.Revision != want || !got.Time.Equal(tt.want) {
				t.Errorf("got %s at %s, want %s at %s", got.Revision, got.Time, want, tt.want)
			}
		})
	}
}

func asItIs(_ *testing.T, folder string) string { return folder }

func changed(t *testing.T, folder string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, "file"), []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func archived(t *testing.T, folder string) string {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(folder, ".git")); err != nil {
		t.Fatal(err)
	}
	return folder
}

func below(t *testing.T, folder string) string {
	t.Helper()
	root := filepath.Join(folder, "relaypool")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestTheVersionIsTheContracts(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := filepath.Join(root, filepath.FromSlash(versionFile))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("package contract\n\nconst Other = 1\n\n// Version is it.\nconst Version = \"7.8.9\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Version(root); err != nil || got != "7.8.9" {
		t.Errorf("version is %q, %v, want 7.8.9", got, err)
	}
	if err := os.WriteFile(file, []byte("package contract\n\nvar Version = \"7.8.9\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Version(root); err == nil {
		t.Errorf("version is %q, want an error without the constant", got)
	}
	if _, err := Version(t.TempDir()); err == nil || !strings.Contains(err.Error(), "project's root") {
		t.Errorf("error is %v, want a question about the project's root", err)
	}
}
