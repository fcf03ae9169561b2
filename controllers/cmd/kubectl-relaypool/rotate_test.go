package main

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/commandline"
)

func TestRotateRaisesTheRevisionByOne(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rotation *v1alpha1.Rotation
		status   *v1alpha1.RotationStatus
		want     int32
	}{
		"a first rotation":                 {nil, nil, 1},
		"a RelayPool of revision 0":        {&v1alpha1.Rotation{}, nil, 1},
		"a rotation after another":         {&v1alpha1.Rotation{Revision: 3}, &v1alpha1.RotationStatus{Revision: 3, Step: v1alpha1.RotationDone}, 4},
		"a RelayPool made with revision 2": {&v1alpha1.Rotation{Revision: 2}, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			pool := s.relayPool(func(p *v1alpha1.RelayPool) { p.Spec.FeePayers.Rotation, p.Status.Rotation = tt.rotation, tt.status })
			s.succeed("rotate", "demo")
			noError(t, s.client.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
			if got := wantedRevision(pool); got != tt.want {
				t.Errorf("the revision is %d, want %d", got, tt.want)
			}
			if code, _, stderr := s.command("", "rotate", "demo"); code != commandline.ExitFailed || !strings.Contains(stderr, "rotat") {
				t.Errorf("a second rotation at once: exit code %d and %q, want a refusal", code, stderr)
			}
		})
	}
}

func TestRotateRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*v1alpha1.RelayPool)
		args   []string
		code   int
		want   string
	}{
		"keys in Secrets of the user": {func(p *v1alpha1.RelayPool) {
			p.Spec.FeePayers.Generate = nil
			p.Spec.FeePayers.SecretRefs = []v1alpha1.SecretKeyReference{{Name: "own", Key: "key"}}
		}, nil, commandline.ExitUsage, "only generated keys are rotated"},
		"a rotation under way": {func(p *v1alpha1.RelayPool) {
			p.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: 2}
			p.Status.Rotation = &v1alpha1.RotationStatus{Revision: 2, Step: v1alpha1.RotationDrain}
		}, nil, commandline.ExitFailed, "rotates to revision 2 already, step Drain"},
		"a rotation that has not started": {func(p *v1alpha1.RelayPool) {
			p.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: 2}
			p.Status.Rotation = &v1alpha1.RotationStatus{Revision: 1, Step: v1alpha1.RotationDone}
		}, nil, commandline.ExitFailed, "rotates to revision 2 already"},
		"a wait for a RelayPool that is paused": {func(p *v1alpha1.RelayPool) { p.Spec.Paused = true }, []string{"--wait"}, commandline.ExitUsage, "kubectl relaypool resume demo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			pool := s.relayPool(tt.change)
			before := pool.Generation
			code, out, stderr := s.command("", append([]string{"rotate", "demo"}, tt.args...)...)
			noError(t, s.client.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
			if code != tt.code || out != "" || !strings.Contains(stderr, tt.want) || pool.Generation != before {
				t.Errorf("exit code %d, stdout %q, stderr %q, generation %d; want %d, empty, %q, %d", code, out, stderr, pool.Generation, tt.code, tt.want, before)
			}
		})
	}
}

// Two people who rotate at once start one rotation.
func TestTheRevisionIsRaisedOnlyFromTheValueThatWasRead(t *testing.T) {
	t.Parallel()
	for name, rotation := range map[string]*v1alpha1.Rotation{"a first rotation": nil, "a later rotation": {Revision: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			pool := s.relayPool(func(p *v1alpha1.RelayPool) { p.Spec.FeePayers.Rotation = rotation })
			second := pool.DeepCopy()
			target := wantedRevision(pool) + 1
			patch, err := raiseRevision(pool, target)
			noError(t, err)
			noError(t, s.client.Patch(t.Context(), pool, patch))
			late, err := raiseRevision(second, target)
			noError(t, err)
			if err := s.client.Patch(t.Context(), second, late); err == nil {
				t.Error("the same patch was accepted twice, want an error")
			}
		})
	}
}

func TestRotateWaitsForTheSteps(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		last v1alpha1.RelayPoolStatus
		code int
		want string
	}{
		"a rotation that succeeds": {v1alpha1.RelayPoolStatus{Rotation: &v1alpha1.RotationStatus{Revision: 1, Step: v1alpha1.RotationDone}}, 0, ""},
		"a rotation that fails": {v1alpha1.RelayPoolStatus{
			Rotation:   &v1alpha1.RotationStatus{Revision: 1, Step: v1alpha1.RotationSweep},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRotationFailed, Message: "the Job failed", LastTransitionTime: metav1.NewTime(at)}},
		}, 1, "the rotation failed, and is not retried: the Job failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			pool := s.relayPool(nil)
			go func() {
				for range 600 { // until the command has raised the revision
					if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(pool), pool); err != nil || pool.Spec.FeePayers.Rotation != nil {
						break
					}
					time.Sleep(20 * time.Millisecond)
				}
				for _, status := range []v1alpha1.RelayPoolStatus{{Rotation: &v1alpha1.RotationStatus{Revision: 1, Step: v1alpha1.RotationFund, Message: "a Job runs"}}, tt.last} {
					pool.Status = status
					if err := s.client.Status().Update(t.Context(), pool); err != nil {
						t.Error(err)
					}
					time.Sleep(300 * time.Millisecond)
				}
			}()
			code, out, stderr := s.command("", "rotate", "demo", "--wait", "--timeout=1m")
			if code != tt.code || !strings.Contains(stderr, tt.want) || !strings.Contains(out, "Fund: a Job runs\n"+string(tt.last.Rotation.Step)+"\n") {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d, the steps, %q", code, out, stderr, tt.code, tt.want)
			}
		})
	}
}

func TestRotateStopsWaitingAtItsTimeout(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.relayPool(nil)
	code, _, stderr := s.command("", "rotate", "demo", "--wait", "--timeout=100ms")
	if code != commandline.ExitFailed || !strings.Contains(stderr, "wait for the rotation to revision 1, which goes on") {
		t.Errorf("exit code %d, stderr %q, want 1 and that the rotation goes on", code, stderr)
	}
}
