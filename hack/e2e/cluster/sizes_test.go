package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/relaypool/relaypool/hack/e2e/judge"
)

// sized is the fleet's Deployment; scaledAt is when an autoscaler wrote its size,
// in seconds after noon, 0 for never.
func sized(version string, pods int32, scaledAt int) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "there", ResourceVersion: version}}
	d.Spec.Replicas = &pods
	d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "operator", Time: &metav1.Time{Time: noon.Add(time.Hour)}}}
	if scaledAt > 0 {
		at := metav1.NewTime(noon.Add(time.Duration(scaledAt) * time.Second))
		d.ManagedFields = append(d.ManagedFields, metav1.ManagedFieldsEntry{Manager: "hpa", Subresource: "scale", Time: &at})
	}
	return d
}

func TestEachSizeIsRecordedOnceAndWithItsTime(t *testing.T) {
	t.Parallel()
	s := &Sizes{now: func() time.Time { return noon }}
	for _, d := range []*appsv1.Deployment{sized("1", 1, 0), sized("2", 3, 10), sized("3", 3, 10), sized("4", 2, 320), sized("5", 5, 320)} {
		s.take(d, d.ResourceVersion == "1")
	}
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	want := []judge.Size{
		{At: at(0), Pods: 1, Blind: true}, {At: at(10), Pods: 3}, {At: at(320), Pods: 2},
		{At: at(0), Pods: 5}, // by hand: by our clock
	}
	if diff := cmp.Diff(want, s.Seen()); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
}

func TestAWatchGoesOnWhereItBrokeAndSaysWhenItCouldNot(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	listed := 0
	kube.PrependReactor("list", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		listed++
		list := &appsv1.DeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: []appsv1.Deployment{*sized("10", 3, 10)}}
		if listed > 1 {
			list.ResourceVersion, list.Items[0] = "50", *sized("50", 1, 400)
		}
		return true, list, nil
	})
	var from []string
	scripts := [][]watch.Event{
		{{Type: watch.Modified, Object: sized("20", 2, 320)}, {Type: watch.Bookmark, Object: sized("30", 0, 0)}},
		{{Type: watch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired}}},
		{{Type: watch.Modified, Object: sized("60", 1, 400)}},
	}
	ctx, stop := context.WithCancel(t.Context())
	kube.PrependWatchReactor("deployments", func(action clienttesting.Action) (bool, watch.Interface, error) {
		from = append(from, action.(clienttesting.WatchActionImpl).ListOptions.ResourceVersion)
		events := make(chan watch.Event, 2)
		for _, e := range scripts[len(from)-1] {
			events <- e
		}
		if len(from) == len(scripts) {
			stop()
		}
		close(events)
		return true, watch.NewProxyWatcher(events), nil
	})
	s := (&Cluster{Kube: kube}).FollowSizes(ctx, "there", "demo", func() time.Time { return noon })
	s.Close()
	if diff := cmp.Diff([]string{"10", "30", "50"}, from); diff != "" {
		t.Errorf("watched from (-want +got):\n%s", diff)
	}
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	want := []judge.Size{{At: at(10), Pods: 3, Blind: true}, {At: at(320), Pods: 2}, {At: at(400), Pods: 1, Blind: true}}
	if diff := cmp.Diff(want, s.Seen()); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
}
