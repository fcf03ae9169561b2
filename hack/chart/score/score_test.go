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

// accepted returns the checks of kube-score that the chart may fail, with the reasons.
func accepted() map[string]string {
	return map[string]string{
		"container-image-pull-policy":                   "images have a version or a digest; a node that has the image can start the operator again without the registry",
		"container-ephemeral-storage-request-and-limit": "the container writes logs, which the node rotates, and some hundred megabytes of leaves to a file without a name, which a limit would not count",
		"deployment-has-host-podantiaffinity":           "topologySpreadConstraints spread replicas over nodes",
	}
}

// acceptedForOneReplica returns additional accepted checks for an operator with one replica.
func acceptedForOneReplica() map[string]string {
	return map[string]string{
		"deployment-replicas": "a stopped replica releases its Lease at once, and the relays keep running without an operator",
	}
}

func TestKubeScoreFindsNothing(t *testing.T) {
	t.Parallel()
	goldens, err := filepath.Glob("../testdata/*.golden.yaml")
	must(t, err)
	if len(goldens) < 12 {
		t.Fatalf("%d golden files were found, want at least 12", len(goldens))
	}
	failed := map[string]bool{}
	for _, file := range goldens {
		content, err := os.ReadFile(file)
		must(t, err)
		for check, found := range findings(t, content) {
			failed[check] = true
			_, ok := accepted()[check]
			if _, single := acceptedForOneReplica()[check]; single && bytes.Contains(content, []byte("\n  replicas: 1\n  selector:")) {
				ok = true
			}
			// Without a Lease, two operators at the same time do more harm than a moment without an operator.
			if check == "deployment-strategy" && bytes.Contains(content, []byte("RELAYPOOL_LEADER_ELECT")) {
				ok = true
			}
			// Users who turn the policy off have their own reasons.
			if check == "pod-networkpolicy" && !bytes.Contains(content, []byte("kind: NetworkPolicy")) {
				ok = true
			}
			if !ok {
				t.Errorf("%s: %s: %s", file, check, found.text)
			}
		}
	}
	for _, exceptions := range []map[string]string{accepted(), acceptedForOneReplica()} {
		for check := range exceptions {
			if !failed[check] {
				t.Errorf("%s passes everywhere: delete its exception", check)
			}
		}
	}
}

// acceptedForFleets returns the checks of kube-score that a RelayPool's objects may fail, with the
// reasons.
func acceptedForFleets() map[string]string {
	return map[string]string{
		"container-image-pull-policy":                   "images have a version or a digest; a node that has the image can start a relay again without the registry",
		"container-ephemeral-storage-request-and-limit": "the container writes logs, which the node rotates, and some hundred megabytes of leaves to a file without a name, which a limit would not count",
		"deployment-has-host-podantiaffinity":           "topologySpreadConstraints spread relays over nodes",
	}
}

func TestKubeScoreFindsNothingInFleets(t *testing.T) {
	t.Parallel()
	goldens, err := filepath.Glob("../../../controllers/internal/build/testdata/*.golden.yaml")
	must(t, err)
	if len(goldens) < 5 {
		t.Fatalf("%d golden files were found, want at least 5", len(goldens))
	}
	failed := map[string]bool{}
	for _, file := range goldens {
		content, err := os.ReadFile(file)
		must(t, err)
		for check, found := range findings(t, content) {
			failed[check] = true
			_, ok := acceptedForFleets()[check]
			// spec.networkPolicy is off by default, because it needs rules for the endpoints and Postgres.
			if check == "pod-networkpolicy" && !bytes.Contains(content, []byte("kind: NetworkPolicy")) {
				ok = true
			}
			// These RelayPools set every field, among them the Service's type and the pods' user.
			name := strings.TrimSuffix(filepath.Base(file), ".golden.yaml")
			chosen := check == "service-type" || check == "container-security-context-user-group-id"
			if chosen && slices.Contains([]string{"exposed", "full", "greatest", "least"}, name) {
				ok = true
			}
			// podTemplate adds these containers, which are the user's.
			if strings.HasPrefix(check, "container-") && len(found.containers) > 0 && !slices.ContainsFunc(found.containers, func(name string) bool { return name != "fetch" && name != "log-shipper" }) {
				ok = true
			}
			// The gate holds a fleet at 0 pods, and an autoscaler sizes one without replicas.
			if check == "deployment-replicas" && (bytes.Contains(content, []byte("\n  replicas: 0\n")) || bytes.Contains(content, []byte("kind: ScaledObject"))) {
				ok = true
			}
			if !ok {
				t.Errorf("%s: %s: %s", file, check, found.text)
			}
		}
	}
	for check := range acceptedForFleets() {
		if !failed[check] {
			t.Errorf("%s passes everywhere: delete its exception", check)
		}
	}
}

// namedReader adds the file name that kube-score requires.
type namedReader struct {
	io.Reader
}

func (namedReader) Name() string { return "chart" }

// finding is what one check of kube-score found.
type finding struct {
	text string
	// containers are the paths of the comments, which are names for checks of containers.
	containers []string
}

// findings returns kube-score's findings, by the names of its checks.
func findings(t *testing.T, objects []byte) map[string]finding {
	t.Helper()
	_ = os.Getenv("RELAYPOOL_SOURCES") // the cached result of a test that reads other modules' files holds until this changes
	p, err := parser.New(nil)
	must(t, err)
	all, err := p.ParseFiles([]ks.NamedReader{namedReader{bytes.NewReader(objects)}})
	must(t, err)
	run := &config.RunConfiguration{
		// A CPU limit could slow down a leader, which has to renew its Lease.
		IgnoreContainerCpuLimitRequirement: true,
		KubernetesVersion:                  config.Semver{Major: 1, Minor: 34},
		MinReplicasDeployment:              2,
	}
	card, err := score.Score(all, score.RegisterAllChecks(all, &checks.Config{IgnoredTests: map[string]struct{}{}}, run), run)
	must(t, err)
	out := map[string]finding{}
	checked := 0
	for _, object := range *card {
		for _, c := range object.Checks {
			checked++
			if c.Skipped || c.Grade >= scorecard.GradeAlmostOK {
				continue
			}
			found := out[c.Check.ID] // of another object
			var messages []string
			for _, comment := range c.Comments {
				found.containers = append(found.containers, comment.Path)
				messages = append(messages, comment.Path+" "+comment.Summary+" "+comment.Description)
			}
			slices.Sort(messages)
			found.text += object.HumanFriendlyRef() + ": " + strings.Join(messages, "; ") + "\n"
			out[c.Check.ID] = found
		}
	}
	if checked < 25 {
		t.Fatalf("kube-score made %d checks, want at least 25", checked)
	}
	return out
}
