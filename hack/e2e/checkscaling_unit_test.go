package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestShrinkingTooFastIsReported(t *testing.T) {
	t.Parallel()
	pace := shrinkPace{Stable: 5 * time.Minute, Interval: time.Minute, Slack: 10 * time.Second}
	size := func(seconds float64, pods int32) fleetSize { return fleetSize{At: afterNoon(seconds), Pods: pods} }
	for name, tc := range map[string]struct {
		sizes []fleetSize
		steps int
		// want are parts of the error; none for no error.
		want []string
	}{
		"as fast as allowed":                         {[]fleetSize{size(0, 1), size(10, 3), size(310, 2), size(375, 1)}, 2, nil},
		"the clocks differ slightly":                 {[]fleetSize{size(0, 1), size(10, 3), size(305, 2), size(361, 1)}, 2, nil},
		"the fleet grew again in between":            {[]fleetSize{size(0, 1), size(10, 3), size(310, 2), size(330, 3), size(640, 2), size(700, 1)}, 3, nil},
		"the fleet never grew":                       {[]fleetSize{size(0, 1)}, 0, nil},
		"no size was recorded":                       {nil, 0, nil},
		"two pods at once":                           {[]fleetSize{size(0, 1), size(10, 3), size(310, 1)}, 1, []string{"from 3 pods to 1 at 12:05:10: expected one pod at a time"}},
		"two pods at once, 10 s after growing":       {[]fleetSize{size(0, 1), size(10, 3), size(20, 1)}, 1, []string{"one pod at a time", "10 s after it had grown"}},
		"a step four minutes after growing":          {[]fleetSize{size(0, 1), size(10, 3), size(250, 2), size(315, 1)}, 2, []string{"240 s after it had grown: expected 300 s or more"}},
		"two steps 15 s apart":                       {[]fleetSize{size(0, 1), size(10, 3), size(310, 2), size(325, 1)}, 2, []string{"15 s after the previous step: expected 60 s"}},
		"a step too soon after the fleet grew again": {[]fleetSize{size(0, 1), size(10, 3), size(310, 2), size(330, 3), size(400, 2)}, 2, []string{"70 s after it had grown"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps, err := checkShrinking(tc.sizes, pace)
			if len(steps) != tc.steps || (err == nil) != (len(tc.want) == 0) {
				t.Errorf("%d steps, error %v; want %d and %q", len(steps), err, tc.steps, tc.want)
			}
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
		})
	}
}

// sized returns a Deployment. scaledAt is when an autoscaler wrote its size, in seconds
// after noon; 0 for never.
func sized(pods int32, scaledAt float64) *appsv1.Deployment {
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &pods}}
	d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "operator", Time: &metav1.Time{Time: afterNoon(3600)}}}
	if scaledAt > 0 {
		d.ManagedFields = append(d.ManagedFields, metav1.ManagedFieldsEntry{Manager: "hpa", Subresource: "scale", Time: &metav1.Time{Time: afterNoon(scaledAt)}})
	}
	return d
}

func TestEachSizeIsRecordedOnceAndWithItsTime(t *testing.T) {
	t.Parallel()
	var got []fleetSize
	for _, d := range []*appsv1.Deployment{sized(1, 0), sized(3, 10), sized(3, 10), sized(2, 320), sized(5, 320)} {
		got = appendSize(got, d, noon)
	}
	want := []fleetSize{{noon, 1}, {afterNoon(10), 3}, {afterNoon(320), 2}, {noon, 5}} // the last change was made by hand, so its time is now
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
}
