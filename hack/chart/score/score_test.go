// Package score checks the rendered chart with kube-score. It is a module of its own because
// kube-score needs an older Kubernetes than Helm does.
package score

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zegl/kube-score/config"
	ks "github.com/zegl/kube-score/domain"
	"github.com/zegl/kube-score/parser"
	"github.com/zegl/kube-score/score"
	"github.com/zegl/kube-score/score/checks"
	"github.com/zegl/kube-score/scorecard"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// accepted returns the checks of kube-score that the chart does not meet, and why.
func accepted() map[string]string {
	return map[string]string{
		"container-image-pull-policy":                   "images have a version or a digest; a node that has one need not reach the registry to start the operator again",
		"container-ephemeral-storage-request-and-limit": "the file system is read-only and there is no volume to write to: logs are all that is left, and the node rotates these",
		"deployment-has-host-podantiaffinity":           "topologySpreadConstraints spread replicas over nodes",
	}
}

// alone returns the additional accepted checks for an operator of one replica.
func alone() map[string]string {
	return map[string]string{
		"deployment-replicas": "one replica hands its Lease over at once, and fleets work on while none is there",
	}
}

func TestKubeScoreFindsNothing(t *testing.T) {
	t.Parallel()
	goldens, err := filepath.Glob("../testdata/*.golden.yaml")
	must(t, err)
	if len(goldens) < 12 {
		t.Fatalf("%d goldens were found", len(goldens))
	}
	met := map[string]bool{}
	for _, file := range goldens {
		content, err := os.ReadFile(file)
		must(t, err)
		for check, why := range findings(t, content) {
			met[check] = true
			_, ok := accepted()[check]
			if _, single := alone()[check]; single && bytes.Contains(content, []byte("\n  replicas: 1\n  selector:")) {
				ok = true
			}
			// Without a Lease, two operators at once do more harm than a moment without one.
			if check == "deployment-strategy" && bytes.Contains(content, []byte("RELAYPOOL_LEADER_ELECT")) {
				ok = true
			}
			// Users who turn the policy off have their own reasons.
			if check == "pod-networkpolicy" && !bytes.Contains(content, []byte("kind: NetworkPolicy")) {
				ok = true
			}
			if !ok {
				t.Errorf("%s: %s: %s", file, check, why)
			}
		}
	}
	for _, exceptions := range []map[string]string{accepted(), alone()} {
		for check := range exceptions {
			if !met[check] {
				t.Errorf("%s is excepted, and met everywhere: take the exception out", check)
			}
		}
	}
}

// named adds a file name to a text, which kube-score requires.
type named struct {
	io.Reader
}

func (named) Name() string { return "chart" }

// findings returns kube-score's findings, by the names of its checks.
func findings(t *testing.T, objects []byte) map[string]string {
	t.Helper()
	p, err := parser.New(nil)
	must(t, err)
	all, err := p.ParseFiles([]ks.NamedReader{named{bytes.NewReader(objects)}})
	must(t, err)
	run := &config.RunConfiguration{
		// A CPU limit could slow down a leader, which has to renew its Lease.
		IgnoreContainerCpuLimitRequirement: true,
		KubernetesVersion:                  config.Semver{Major: 1, Minor: 34},
		MinReplicasDeployment:              2,
	}
	card, err := score.Score(all, score.RegisterAllChecks(all, &checks.Config{IgnoredTests: map[string]struct{}{}}, run), run)
	must(t, err)
	out := map[string]string{}
	checked := 0
	for _, object := range *card {
		for _, c := range object.Checks {
			checked++
			if c.Skipped || c.Grade >= scorecard.GradeAlmostOK {
				continue
			}
			var said []string
			for _, comment := range c.Comments {
				said = append(said, comment.Path+" "+comment.Summary+" "+comment.Description)
			}
			slices.Sort(said)
			out[c.Check.ID] = object.HumanFriendlyRef() + ": " + strings.Join(said, "; ")
		}
	}
	if checked < 25 {
		t.Fatalf("%d checks were made", checked)
	}
	return out
}
