package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

const backlogPage = `{"due_count":7,"oldest_due_age_seconds":4,"pending_count":7,"processing_count":3,"oldest_age_seconds":4,"held":{"fee_payer_empty":12,"no_route":1,"brand_new":3},"queued_jobs":[]}`

func TestStatusShowsATree(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.relayPool(func(p *v1alpha1.RelayPool) {
		p.Spec.Paused = true
		p.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: 1}
		p.Status.Rotation = &v1alpha1.RotationStatus{Revision: 1, Step: v1alpha1.RotationFund, Since: new(metav1.NewTime(at)), Message: "the Job demo-payer-1-fund runs"}
	})
	s.pod("demo-a", false)
	s.pod("demo-b", true)
	s.pages["demo-b /backlog"] = backlogPage
	s.golden("status", s.succeed("status", "demo"))
}

func TestStatusOfAnEmptyPool(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.relayPool(func(p *v1alpha1.RelayPool) { p.Status = v1alpha1.RelayPoolStatus{} })
	s.golden("status-empty", s.succeed("status", "demo"))
}

// The API server itself refuses the proxy here, so the backlog comes from the status.
func TestStatusSaysWhyTheBacklogIsUnknown(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.relayPool(nil)
	s.pod("demo-b", true)
	s.pages["demo-b /backlog"] = "no JSON"
	out := s.succeed("status", "demo")
	if !strings.Contains(out, "20 wait for a worker, rounded") || !strings.Contains(out, "pod demo-b answered /backlog with something else than a backlog") {
		t.Errorf("received %s, want the status' backlog and why the pod's is unknown", out)
	}
	s.viewer()
	out = s.succeed("status", "demo")
	if !strings.Contains(out, "you may not get pods/proxy in the namespace "+s.namespace) {
		t.Errorf("received %s, want that the right is missing", out)
	}
}

// viewer makes commands run as somebody who may view the namespace, and removes the pods' pages, so
// that the API server decides.
func (s *stand) viewer() {
	s.t.Helper()
	config, err := apiservertest.Server(s.t).User("viewer-of-" + s.namespace)
	noError(s.t, err)
	bindViewer(s, "viewer-of-"+s.namespace)
	s.pages = nil
	s.kubeconfig = s.gateway(config)
}

func TestStatusWithoutANameIsATable(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	pool := s.relayPool(nil)
	out := s.succeed("status")
	created := pool.CreationTimestamp.Time
	if age := since(created, at.Add(3*time.Minute)); !strings.Contains(out, age) {
		t.Errorf("received %q, want the age %s", out, age)
	}
	want := []string{"NAME", "READY", "REASON", "PODS", "BACKLOG", "PAYERS", "ROTATION", "AGE", "demo", "False", "Underfunded", "1/2", "20", "2", "-"}
	if got := strings.Fields(out); strings.Join(got[:len(want)], " ") != strings.Join(want, " ") {
		t.Errorf("received %q, want %q and the age", got, want)
	}
	if out := s.succeed("status", "-A"); !strings.Contains(out, "NAMESPACE") || !strings.Contains(out, s.namespace) {
		t.Errorf("received %q, want a column of namespaces", out)
	}
	if _, out, stderr := s.command("", "status", "-n", "default"); out != "" || stderr != "no RelayPools in default\n" {
		t.Errorf("received %q and %q, want that there are none", out, stderr)
	}
}

func TestStatusPrintsTheObject(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	pool := s.relayPool(nil)
	for format, decode := range map[string]func(string, any) error{
		"json": func(text string, to any) error { return json.Unmarshal([]byte(text), to) },
		"yaml": func(text string, to any) error { return yaml.UnmarshalStrict([]byte(text), to) },
	} {
		var got v1alpha1.RelayPool
		noError(t, decode(s.succeed("status", "demo", "-o", format), &got))
		if got.UID != pool.UID || got.Kind != v1alpha1.Kind || got.Status.ReadyReplicas != 1 || got.ManagedFields != nil {
			t.Errorf("%s: received %+v, want the RelayPool without managed fields", format, got)
		}
		var list v1alpha1.RelayPoolList
		noError(t, decode(s.succeed("status", "-o", format), &list))
		if len(list.Items) != 1 || list.Kind != "RelayPoolList" || list.Items[0].Kind != v1alpha1.Kind {
			t.Errorf("%s: received %+v, want a list of the RelayPool", format, list)
		}
	}
}

func TestAMissingPoolIsNamed(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for _, args := range [][]string{{"status", "gone"}, {"fund", "gone"}, {"rotate", "gone"}, {"pause", "gone"}, {"held", "gone"}, {"support-bundle", "gone"}} {
		code, _, stderr := s.command("", args...)
		if code != 1 || !strings.Contains(stderr, "has no RelayPool gone") {
			t.Errorf("%s: exit code %d and %q, want 1 and that there is none", args[0], code, stderr)
		}
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	pool := s.relayPool(nil)
	for _, step := range []struct {
		command, want string
		paused        bool
	}{
		{"pause", "demo paused\n", true}, {"pause", "demo is already paused\n", true},
		{"resume", "demo resumed\n", false}, {"resume", "demo is already resumed\n", false},
	} {
		out := s.succeed(step.command, "demo")
		noError(t, s.client.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
		if !strings.HasSuffix(out, step.want) || pool.Spec.Paused != step.paused {
			t.Errorf("%s: received %q and paused %t, want %q and %t", step.command, out, pool.Spec.Paused, step.want, step.paused)
		}
	}
}
