package pool

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The last write of the status has a time in the future: another operator's clock was
// ahead, or this operator's clock was set back. Figures are still written, with the present
// time.
func TestStatusTimeInTheFutureDelaysNoFigures(t *testing.T) {
	t.Parallel()
	f := healthyFacts()
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
