package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rhysd/actionlint"
	"go.yaml.in/yaml/v3"
)

// workflow has the fields of a workflow that these tests check.
type workflow struct {
	Permissions *map[string]string
	Jobs        map[string]struct {
		Uses        string
		Needs       any // a job or a list of jobs
		Permissions *map[string]string
		Environment string
		Timeout     int `yaml:"timeout-minutes"`
		Steps       []struct {
			Name string
			Uses string
			Run  string
			With map[string]any
		}
	}
}

// workflows returns the text of each workflow file by the file's name.
func workflows(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", ".github", "workflows", "*"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = string(content)
	}
	if len(all) < 2 {
		t.Fatalf("found %d workflows, want ci.yml and release.yml at least", len(all))
	}
	return all
}

func decode(t *testing.T, text string) workflow {
	t.Helper()
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestActionlintFindsNothing(t *testing.T) {
	t.Parallel()
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for name := range workflows(t) {
		faults, err := linter.LintFile(filepath.Join(root, ".github", "workflows", name), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faults {
			t.Errorf("%s:%d: %s [%s]", name, fault.Line, fault.Message, fault.Kind)
		}
	}
}

var (
	usesLine = regexp.MustCompile(`(?m)^\s*(?:- )?uses: (\S+)(.*)$`)
	pinned   = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	tagged   = regexp.MustCompile(`^ # v\d+\.\d+\.\d+$`)
)

// A tag can be moved to other code, but a commit cannot.
func TestEveryActionIsPinnedToACommitWithItsVersion(t *testing.T) {
	t.Parallel()
	pins := map[string]string{} // by action
	for name, text := range workflows(t) {
		for _, match := range usesLine.FindAllStringSubmatch(text, -1) {
			action, comment := match[1], match[2]
			if strings.HasPrefix(action, "./") {
				continue
			}
			if !pinned.MatchString(action) || !tagged.MatchString(comment) {
				t.Errorf("%s uses %s%s: want a commit of 40 hex digits, followed by the version as in # v1.2.3", name, action, comment)
				continue
			}
			title, commit, _ := strings.Cut(action, "@")
			if other := pins[title]; other != "" && other != commit+comment {
				t.Errorf("%s uses %s at %s%s, want %s as elsewhere", name, title, commit, comment, other)
			}
			pins[title] = commit + comment
		}
	}
	if len(pins) == 0 {
		t.Error("no use of an action was found: mend this test's pattern")
	}
}

func TestWorkflowJobsHaveMinimalPermissions(t *testing.T) {
	t.Parallel()
	// All permissions, except for reading the source.
	want := map[string]map[string]string{
		"release.yml publish": {"packages": "write"},
		"release.yml attest":  {"packages": "write", "id-token": "write", "attestations": "write"},
		"release.yml release": {"contents": "write", "id-token": "write", "attestations": "write"},
	}
	got := map[string]map[string]string{}
	for name, text := range workflows(t) {
		w := decode(t, text)
		if w.Permissions == nil || len(*w.Permissions) != 0 {
			t.Errorf("%s: want permissions: {} at the top, so that each job sets its own", name)
		}
		for id, job := range w.Jobs {
			if job.Permissions == nil {
				t.Errorf("%s: job %s does not set its permissions", name, id)
				continue
			}
			for scope, level := range *job.Permissions {
				if scope == "contents" && level == "read" {
					continue
				}
				title := name + " " + id
				if got[title] == nil {
					got[title] = map[string]string{}
				}
				got[title][scope] = level
			}
			if job.Uses == "" && job.Timeout == 0 {
				t.Errorf("%s: job %s has no timeout-minutes, and may hang for six hours", name, id)
			}
			for _, step := range job.Steps {
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					t.Errorf("%s: job %s leaves its token to every program that it runs: want persist-credentials: false", name, id)
				}
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: job %s has an expression in its script: pass the value by env", name, id)
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}

var (
	makeCall = regexp.MustCompile(`(?m)(?:^|[;&|] *)make +([a-z0-9-]+)`)
	target   = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	script   = regexp.MustCompile(`(?m)(?:^|[ "])(hack/[a-z/-]+)(?: |$)`)
)

func TestFilesThatWorkflowsRunExist(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, match := range target.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, match[1])
	}
	var called []string
	for name, text := range workflows(t) {
		for id, job := range decode(t, text).Jobs {
			for _, step := range job.Steps {
				for _, match := range makeCall.FindAllStringSubmatch(step.Run, -1) {
					called = append(called, match[1])
					if !slices.Contains(targets, match[1]) {
						t.Errorf("%s: job %s runs make %s, which the Makefile does not have", name, id, match[1])
					}
				}
				for _, match := range script.FindAllStringSubmatch(step.Run, -1) {
					if _, err := os.Stat(filepath.Join("..", "..", match[1])); err != nil {
						t.Errorf("%s: job %s runs or enters %s: %v", name, id, match[1], err)
					}
				}
			}
		}
	}
	slices.Sort(called)
	want := []string{"chart", "e2e", "fresh", "images", "lint", "plugin", "test"}
	if diff := cmp.Diff(want, slices.Compact(called)); diff != "" {
		t.Errorf("targets that workflows run (-want +got):\n%s", diff)
	}
}
