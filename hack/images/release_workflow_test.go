package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ownCode matches a script that runs or builds the project's own programs.
var ownCode = regexp.MustCompile(`(?m)(?:^|[;&|(] *)(?:make|go|bin/[a-z/]+|\./[a-z./]+) `)

// The project's programs contain third-party modules, so a job that may write to the registry or
// sign must not run them. The only exception is the program that pushes, in a job that may not
// sign.
func TestJobsThatMayWriteRunNoProjectPrograms(t *testing.T) {
	t.Parallel()
	w := decode(t, workflows(t)["release.yml"])
	calls := 0
	for id, job := range w.Jobs {
		mayWrite := false
		for _, level := range *job.Permissions {
			mayWrite = mayWrite || level == "write"
		}
		for _, step := range job.Steps {
			for _, call := range ownCode.FindAllString(step.Run, -1) {
				calls++
				pushes := id == "publish" && strings.TrimSpace(call) == "bin/images/tool" && (*job.Permissions)["id-token"] == ""
				if mayWrite && !pushes {
					t.Errorf("job %s, which may write, runs %q", id, strings.TrimSpace(call))
				}
			}
			if mayWrite && (strings.HasPrefix(step.Uses, "actions/checkout@") || strings.HasPrefix(step.Uses, "actions/setup-go@")) {
				t.Errorf("job %s, which may write, uses %s: build in another job", id, step.Uses)
			}
		}
	}
	if calls < 4 {
		t.Errorf("%d calls of the project's programs were found, want at least 4: mend this test's pattern", calls)
	}
}

// An approval is required before anything is published. All jobs that write run after it.
func TestPublishingNeedsApproval(t *testing.T) {
	t.Parallel()
	w := decode(t, workflows(t)["release.yml"])
	order := []string{"notes", "ci", "build", "publish", "attest", "release"}
	if len(w.Jobs) != len(order) {
		t.Errorf("there are %d jobs, want %v", len(w.Jobs), order)
	}
	for i, id := range order {
		if i > 0 && w.Jobs[id].Needs != order[i-1] {
			t.Errorf("job %s needs %v, want %s", id, w.Jobs[id].Needs, order[i-1])
		}
	}
	if got := w.Jobs["publish"].Environment; got != "release" {
		t.Errorf("job publish has the environment %q, want release, which has reviewers", got)
	}
}

// stepOf returns the script of a step in the release workflow.
func stepOf(t *testing.T, job, step string) string {
	t.Helper()
	for _, s := range decode(t, workflows(t)["release.yml"]).Jobs[job].Steps {
		if s.Name == step && s.Run != "" {
			return s.Run
		}
	}
	t.Fatalf("job %s has no step %q with a script", job, step)
	return ""
}

// runScript runs a step's script in a folder as GitHub does.
func runScript(t *testing.T, folder, text string, environment ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), environment...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestATagOutsideMainIsRefused(t *testing.T) {
	t.Parallel()
	text := stepOf(t, "notes", "The commit is on main")
	origin, clone := t.TempDir(), filepath.Join(t.TempDir(), "clone")
	commit := func(message string) {
		t.Helper()
		git(t, origin, "commit", "-q", "--allow-empty", "-m", message)
	}
	git(t, origin, "init", "-q", "-b", "main")
	commit("one")
	git(t, origin, "tag", "v1.0.0")
	commit("two")
	git(t, origin, "tag", "-a", "-m", "annotated", "v1.1.0")
	git(t, origin, "checkout", "-q", "-b", "other")
	commit("three")
	git(t, origin, "tag", "v1.2.0")
	git(t, origin, "checkout", "-q", "main")
	git(t, origin, "clone", "-q", origin, clone)
	for tag, want := range map[string]bool{"v1.0.0": true, "v1.1.0": true, "v1.2.0": false} {
		git(t, clone, "checkout", "-q", tag)
		out, err := runScript(t, clone, text, "GITHUB_REF_NAME="+tag)
		if got := err == nil; got != want {
			t.Errorf("%s is accepted: %t, want %t; error %v\n%s", tag, got, want, err, out)
		}
		if !want && !strings.Contains(out, "::error::"+tag+" is a tag of ") {
			t.Errorf("the refusal of %s prints %q, want an ::error:: line with the tag", tag, out)
		}
	}
}

// put writes a file below a folder.
func put(t *testing.T, folder, name string, mode os.FileMode, text string) {
	t.Helper()
	file := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(file, mode, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

func TestAPreReleaseIsNotTheLatest(t *testing.T) {
	t.Parallel()
	text := stepOf(t, "release", "Publish")
	programs, folder := t.TempDir(), t.TempDir()
	put(t, programs, "gh", 0o755, "#!/bin/bash\nprintf '%s\\n' \"$@\"\n")
	put(t, folder, "files/relay.tar", 0o644, "")
	for tag, more := range map[string][]string{"v1.2.3": nil, "v1.2.3-rc.1": {"--prerelease"}} {
		out, err := runScript(t, folder, text, "GITHUB_REF_NAME="+tag, "PATH="+programs+":"+os.Getenv("PATH"))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		want := append([]string{"release", "create", tag, "--verify-tag", "--title", tag, "--notes-file", "notes.md"}, more...)
		want = append(want, "files/relay.tar")
		if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(out), "\n")); diff != "" {
			t.Errorf("arguments of gh for %s (-want +got):\n%s", tag, diff)
		}
	}
}

// The workflow attests the digests that push prints, and each platform's image.
func TestWorkflowAttestsThePublishedDigests(t *testing.T) {
	t.Parallel()
	digest := func(n string) string { return "sha256:" + strings.Repeat(n, 64) }
	tests := map[string]struct {
		job, step, file, content string
		want                     []string
	}{
		"published names": {
			"publish", "Publish", "bin/images/tool",
			"#!/bin/bash\n[ \"$*\" = 'push -oci bin/images/oci -oci bin/charts/oci' ] && cat <<END\n" +
				"ghcr.io/relaypool/operator:1.2.3@" + digest("a") + "\nghcr.io/relaypool/relay:1.2.3@" + digest("b") + "\nghcr.io/relaypool/charts/relaypool:1.2.3@" + digest("c") + "\nEND\n",
			[]string{"operator=" + digest("a"), "relay=" + digest("b"), "chart=" + digest("c")},
		},
		"images of each platform": {
			"attest", "Digests", "files/digests.txt",
			digest("1") + "  ghcr.io/relaypool/operator:1.2.3  linux/amd64\n" + digest("2") + "  ghcr.io/relaypool/operator:1.2.3  linux/arm64\n" + digest("3") + "  ghcr.io/relaypool/operator:1.2.3  index\n" +
				digest("4") + "  ghcr.io/relaypool/relay:1.2.3  linux/amd64\n" + digest("5") + "  ghcr.io/relaypool/relay:1.2.3  linux/arm64\n" + digest("6") + "  ghcr.io/relaypool/relay:1.2.3  index\n",
			[]string{"operator-amd64=" + digest("1"), "operator-arm64=" + digest("2"), "relay-amd64=" + digest("4"), "relay-arm64=" + digest("5")},
		},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			put(t, folder, tt.file, 0o644, tt.content)
			outputs := filepath.Join(folder, "outputs")
			if out, err := runScript(t, folder, stepOf(t, tt.job, tt.step), "GITHUB_OUTPUT="+outputs); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got, err := os.ReadFile(outputs)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, strings.Split(strings.TrimSpace(string(got)), "\n")); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
		})
	}
}
