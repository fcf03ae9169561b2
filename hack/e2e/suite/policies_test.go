package suite

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/relaypool/relaypool/hack/e2e/gate"
)

func TestARefusalIsToldFromAGateThatIsAway(t *testing.T) {
	t.Parallel()
	dropped, away := fmt.Errorf("dial: %w", gate.ErrUnreachable), errors.New("the gate answered 503")
	for name, tc := range map[string]struct {
		// answers come one after another, the last one for ever.
		answers []error
		want    bool
		wantErr error
	}{
		"refused at once":                 {[]error{dropped}, true, nil},
		"refused once it is enforced":     {[]error{nil, nil, away, nil, dropped}, true, nil},
		"let in to the last":              {[]error{nil}, false, nil},
		"let in, after the gate was away": {[]error{away, away, nil}, false, nil},
		"the gate is away":                {[]error{away}, false, away},
		"the gate went away":              {[]error{nil, nil, away}, false, away},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := -1
				got, err := refused(t.Context(), enforcedWithin, func(context.Context) error {
					n = min(n+1, len(tc.answers)-1)
					return tc.answers[n]
				})
				if got != tc.want || !errors.Is(err, tc.wantErr) {
					t.Errorf("refused %t, error %v; want %t, %v", got, err, tc.want, tc.wantErr)
				}
			})
		})
	}
}

func TestTheSealedPodIsUnderTheRestrictedStandard(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	pod := sealedPod("gate:1")
	for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
		if !result.Allowed {
			t.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
	if policy := sealedPolicy(); policy.Spec.PodSelector.MatchLabels["app"] != pod.Labels["app"] || len(policy.Spec.Ingress) != 0 {
		t.Errorf("the policy %+v is not about the pod, or admits somebody", policy.Spec)
	}
}
