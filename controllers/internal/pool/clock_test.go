package pool

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The clock of the operator that wrote the status last was ahead, or this one was
// set back: figures are written all the same, and by this clock from then on.
func TestAStatusFromTheFutureDelaysNothing(t *testing.T) {
	t.Parallel()
	f := running()
	f.Pool.Status = statusOf(t, f)
	f.Pool.Status.ObservedAt = ptr.To(metav1.NewTime(now().Add(3 * time.Hour)))
	f.Backlog.Due = 50
	f.Now = now().Add(time.Minute)
	status := statusOf(t, f)
	if got := ptr.Deref(status.Backlog, 0); got != 50 {
		t.Errorf("backlog %d: want 50", got)
	}
	if !status.ObservedAt.Time.Equal(f.Now) {
		t.Errorf("observed at %s: want %s", status.ObservedAt, f.Now)
	}
}
