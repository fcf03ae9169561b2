package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// newRepository makes a repository with contract.Version and one commit.
func newRepository(t *testing.T) (folder, commit string) {
	t.Helper()
	folder = t.TempDir()
	put(t, folder, "relay/contract/contract.go", 0o600, "package contract\n\nconst Other = 1\n\n// Version of the project.\nconst Version = \"7.8.9\"\n")
	git(t, folder, "init", "-q")
	git(t, folder, "add", ".")
	git(t, folder, "commit", "-qm", "one")
	return folder, git(t, folder, "rev-parse", "HEAD")
}

func TestReadSourceReportsTheCommitAndItsTime(t *testing.T) {
	committed, err := time.Parse(time.RFC3339, commitTime)
	if err != nil {
		t.Fatal(err)
	}
	unchanged := func(_ *testing.T, folder string) string { return folder }
	withoutGit := func(t *testing.T, folder string) string {
		if err := os.RemoveAll(filepath.Join(folder, ".git")); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	tests := map[string]struct {
		make           func(t *testing.T, folder string) (root string)
		epoch          string
		revisionSuffix string // after the commit
		noRevision     bool   // the revision is unknown
		want           time.Time
		wantError      string
	}{
		"a clean clone": {make: unchanged, want: committed},
		"a worktree": {make: func(t *testing.T, folder string) string {
			root := filepath.Join(t.TempDir(), "worktree")
			git(t, folder, "worktree", "add", "-q", root)
			return root
		}, want: committed},
		"a clone with a changed file": {make: func(t *testing.T, folder string) string {
			put(t, folder, "relay/other.go", 0o600, "package relay\n")
			return folder
		}, revisionSuffix: "+modified", want: committed},
		"SOURCE_DATE_EPOCH before the commit's":    {make: unchanged, epoch: "86400", want: time.Unix(86400, 0)},
		"an archive of the source, with a time":    {make: withoutGit, epoch: "86400", noRevision: true, want: time.Unix(86400, 0)},
		"an archive of the source, without a time": {make: withoutGit, wantError: "SOURCE_DATE_EPOCH"},
		"an archive inside another repository": {make: func(t *testing.T, folder string) string {
			put(t, folder, "below/relay/contract/contract.go", 0o600, "package contract\n\nconst Version = \"7.8.9\"\n")
			return filepath.Join(folder, "below")
		}, epoch: "1", noRevision: true, want: time.Unix(1, 0)},
		"a time that is not a number": {make: unchanged, epoch: "yesterday", wantError: `is "yesterday", want seconds`},
		"a negative time":             {make: unchanged, epoch: "-1", wantError: "want seconds"},
		"no constant Version": {make: func(t *testing.T, folder string) string {
			if err := os.WriteFile(filepath.Join(folder, "relay", "contract", "contract.go"), []byte("package contract\n\nvar Version = \"7.8.9\"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return folder
		}, wantError: "project's root"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SOURCE_DATE_EPOCH", tt.epoch)
			folder, commit := newRepository(t)
			got, err := readSource(t.Context(), tt.make(t, folder))
			if tt.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantError) {
					t.Fatalf("error is %v, want one with %q", err, tt.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := commit + tt.revisionSuffix
			if tt.noRevision {
				want = "unknown"
			}
			if got.version != "7.8.9" || got.revision != want || !got.created.Equal(tt.want) {
				t.Errorf("got version %s, revision %s, time %s; want version 7.8.9, revision %s, time %s", got.version, got.revision, got.created, want, tt.want)
			}
		})
	}
}

func TestNotesPrintTheVersionsSection(t *testing.T) {
	t.Parallel()
	const links = "[Unreleased]: https://example.org/compare/v7.8.9...HEAD\n[7.8.9]: https://example.org/v7.8.9\n"
	tests := map[string]struct{ changelog, want, wantError string }{
		"a section between others": {
			changelog: "# Changelog\n\n## [Unreleased]\n\n- New.\n\n## [7.8.9] - 2026-03-04\n\n### Fixed\n\n- A fault: see [it](https://example.org/1).\n\n## [7.8.8]\n\n- Old.\n\n" + links,
			want:      "### Fixed\n\n- A fault: see [it](https://example.org/1).\n",
		},
		"the last section, above the links": {changelog: "## [7.8.9] - 2026-02-01\n\n- The first.\n\n" + links, want: "- The first.\n"},
		"an empty section":                  {changelog: "## [7.8.9] - 2026-02-01\n\n" + links, wantError: "has no version 7.8.9"},
		"no section of the version":         {changelog: "## [7.8.90]\n\n- Another.\n\n" + links, wantError: "has no version 7.8.9"},
		"no changelog":                      {wantError: "has no version 7.8.9"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			folder, _ := newRepository(t)
			put(t, folder, "CHANGELOG.md", 0o600, tt.changelog)
			var got bytes.Buffer
			err := run(t.Context(), []string{"notes", "-root", folder, "-tag", "v7.8.9"}, &got, io.Discard)
			if tt.wantError != "" && (err == nil || !strings.Contains(err.Error(), tt.wantError)) || tt.wantError == "" && err != nil {
				t.Fatalf("error is %v, want one with %q", err, tt.wantError)
			}
			if diff := cmp.Diff(tt.want, got.String()); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// A release builds for both platforms, for which a program may have different modules.
func TestEveryModuleOfEveryPlatformHasItsLicence(t *testing.T) {
	t.Parallel()
	s := &source{root: filepath.Join("..", "..")}
	for _, p := range append(released, forTests[:2]...) {
		for _, architecture := range []string{"amd64", "arm64"} {
			t.Run(p.name+" for "+architecture, func(t *testing.T) {
				t.Parallel()
				files := tree{}
				if err := s.addLicenses(t.Context(), files, p, &v1.Platform{OS: "linux", Architecture: architecture}); err != nil {
					t.Fatal(err)
				}
				for name := range files {
					path, _, _ := strings.Cut(strings.TrimPrefix(name, thirdParty+"/"), "@")
					for _, without := range withoutLicense {
						if path == without {
							t.Errorf("%s has the licence file %s: delete the module from withoutLicense", path, name)
						}
					}
				}
			})
		}
	}
}

func TestSBOMIsReproducibleAndValid(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(os.Args[0]) // any Go program
	if err != nil {
		t.Fatal(err)
	}
	s := &source{version: "1.2.3", revision: "c0ffee", created: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	digest := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("ab", 32)}
	var documents [2][]byte
	for i := range documents {
		if documents[i], err = s.sbom("ghcr.io/relaypool/relay:1.2.3", digest, program); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(documents[0]), string(documents[1])); diff != "" {
		t.Errorf("two SBOMs of the same image differ:\n%s", diff)
	}
	document, err := spdxjson.Read(bytes.NewReader(documents[0]))
	if err != nil {
		t.Fatalf("read the SBOM with tools-golang: %v", err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Errorf("validate the SBOM with tools-golang: %v", err)
	}
	for _, p := range document.Packages {
		if p.FilesAnalyzed {
			t.Errorf("%s claims that its files were analysed", p.PackageName)
		}
	}
}
