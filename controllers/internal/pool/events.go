package pool

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// These are the actions of events: what the operator did.
const (
	actionApply  = "Apply"
	actionReport = "Report"
)

// emitApplied emits the events of this pass's writes now, because the next pass no
// longer sees a change.
func (r *Reconciler) emitApplied(pool *v1alpha1.RelayPool, result *apply.Result) {
	emit := func(ref apply.Ref, reason, note string) {
		r.Recorder.Eventf(pool, related(pool, ref.Kind, ref.Name), corev1.EventTypeNormal, reason, actionApply, "%s", note)
	}
	for _, ref := range result.Repaired {
		emit(ref, v1alpha1.EventDriftRepaired, ref.String()+" had been changed by somebody else and was changed back: change the RelayPool instead")
	}
	for _, ref := range result.Pruned {
		emit(ref, v1alpha1.EventPruned, ref.String()+" was deleted, because it is no longer wanted")
	}
	if result.HandedOver {
		r.Recorder.Eventf(pool, nil, corev1.EventTypeNormal, v1alpha1.EventScalingHandedOver, actionApply, "%s", "the autoscaler sizes the fleet from now on, starting with the present number of pods")
	}
}

// emitStatusChanges emits the events for the changes in a written status, and the events
// of the keys.
func (r *Reconciler) emitStatusChanges(f *Facts, p *Plan, next *v1alpha1.RelayPoolStatus) {
	for _, e := range statusEvents(f, p, next) {
		r.Recorder.Eventf(f.Pool, nil, e.kind, e.reason, e.action, "%s", e.note)
	}
	for _, e := range p.Keys.Events {
		r.emitKeyEvent(f.Pool, e)
	}
}

// emitKeyEvent emits the event of a key.
func (r *Reconciler) emitKeyEvent(pool *v1alpha1.RelayPool, e keys.Event) {
	var about runtime.Object
	if e.Secret != "" {
		about = related(pool, corev1.SchemeGroupVersion.WithKind("Secret"), e.Secret)
	}
	r.Recorder.Eventf(pool, about, e.Type, e.Reason, e.Action, "%s", shortened(e.Note, maxNote))
}

// related returns a reference to the object that an event of a RelayPool is about. The
// recorder treats events with the same reason, action and object as repeats of the first,
// and drops the messages of the repeats, so two events of one pass need different objects.
func related(pool *v1alpha1.RelayPool, kind schema.GroupVersionKind, name string) runtime.Object {
	return &corev1.ObjectReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: pool.Namespace, Name: name}
}

// statusEvent is an event to be emitted.
type statusEvent struct{ kind, reason, action, note string }

// statusEvents returns the events for the differences between the next status and the last
// one.
func statusEvents(f *Facts, p *Plan, next *v1alpha1.RelayPoolStatus) []statusEvent {
	var out []statusEvent
	if p.RecordInitialised {
		out = append(out, statusEvent{corev1.EventTypeNormal, v1alpha1.EventPoolInitialised, actionReport,
			"the pool is initialised: the gate is open from now on"})
	}
	last := f.Pool.Status.Conditions
	before, after := meta.FindStatusCondition(last, v1alpha1.ConditionStalled), meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionStalled)
	if after != nil && after.Reason == v1alpha1.ReasonForeignObject && (before == nil || before.Reason != after.Reason || before.Message != after.Message) {
		out = append(out, statusEvent{corev1.EventTypeWarning, v1alpha1.EventForeignObject, actionReport, shortened(after.Message, maxNote)})
	}
	before = meta.FindStatusCondition(last, v1alpha1.ConditionAutoscalingActive)
	if before != nil && f.Pool.Spec.Autoscaling == nil {
		out = append(out, statusEvent{corev1.EventTypeNormal, v1alpha1.EventScalingHandedOver, actionReport, "the operator sizes the fleet again, by spec.replicas"})
	}
	return out
}

// maxNote is the longest note (message) of an event that the API server accepts, in bytes.
const maxNote = 1024
