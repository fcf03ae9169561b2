package pool

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// maxMessage bounds a condition's message, in bytes.
const maxMessage = 1500

// Outcome is the result of carrying out a plan.
type Outcome struct {
	// Result is what the Applier wrote and found.
	Result apply.Result
	// Applied: objects were applied in this pass, with or without errors.
	Applied bool
	// Failed: something could not be written, and the next pass tries again.
	Failed bool
}

// addRefusals adds the refusals of objects that the Applier does not write. A later pass
// repeats these writes.
func (o *Outcome) addRefusals(all []apply.Refusal) {
	if len(all) == 0 {
		return
	}
	o.Result.Refused = append(o.Result.Refused, all...)
	if o.Result.RetryAfter == 0 || o.Result.RetryAfter > apply.DefaultRefusalInterval {
		o.Result.RetryAfter = apply.DefaultRefusalInterval
	}
}

// verdict is a condition without its type and times. The zero verdict means that the
// condition is absent.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

func conditionTrue(reason, message string) verdict {
	return verdict{metav1.ConditionTrue, reason, message}
}
func conditionFalse(reason, message string) verdict {
	return verdict{metav1.ConditionFalse, reason, message}
}
func conditionUnknown(reason, message string) verdict {
	return verdict{metav1.ConditionUnknown, reason, message}
}

// unreadable is the verdict for a fact that could not be read from the API server.
func unreadable(what string) verdict {
	return conditionUnknown(v1alpha1.ReasonInternalError, what+" could not be read; the operator's log says why, and the read is repeated")
}

// Report returns the status after a pass. It is pure: the facts contain the last status.
func Report(f *Facts, p *Plan, o *Outcome) v1alpha1.RelayPoolStatus {
	last := &f.Pool.Status
	next := *last.DeepCopy()
	next.ObservedGeneration = f.Pool.Generation
	if p.RecordInitialised {
		next.InitialisedAt = &metav1.Time{Time: f.Now}
	}
	replicaCounts(&next, f)
	next.API = apiStatus(f)
	next.Selector = labels.SelectorFromSet(build.Selector(f.Pool.Name)).String()
	if f.KeysKnown {
		next.Rotation = p.Keys.Rotation
	}
	conditions(&next, f, p, o)
	figures(&next, f, p)
	return next
}

func replicaCounts(next *v1alpha1.RelayPoolStatus, f *Facts) {
	if f.isUnread(PartFleet) {
		return
	}
	next.DesiredReplicas = f.Fleet.deploymentReplicas()
	next.Replicas, next.ReadyReplicas, next.TerminatingReplicas = 0, 0, 0
	for i := range f.Fleet.Pods {
		if f.Fleet.Pods[i].DeletionTimestamp != nil {
			next.TerminatingReplicas++
		}
	}
	if d := f.Fleet.Deployment; d != nil {
		next.Replicas, next.ReadyReplicas = d.Status.Replicas, d.Status.ReadyReplicas
	}
}

// conditions sets all conditions that apply, in a fixed order.
func conditions(next *v1alpha1.RelayPoolStatus, f *Facts, p *Plan, o *Outcome) {
	list := []struct {
		kind string
		v    verdict
	}{
		{v1alpha1.ConditionAccepted, accepted(f, p)},
		{v1alpha1.ConditionSecretsResolved, secretsResolved(f, p)},
		{v1alpha1.ConditionPoolInitialised, poolInitialised(f, p)},
		{v1alpha1.ConditionFeePayersFunded, feePayersFunded(f, p)},
		{v1alpha1.ConditionKeysBackedUp, keysBackedUp(f, p)},
		{v1alpha1.ConditionSpendingCapped, spendingCapped(f)},
		{v1alpha1.ConditionAvailable, available(f, p, o)},
		{v1alpha1.ConditionExposed, exposed(f, o)},
		{v1alpha1.ConditionAutoscalingActive, autoscalingActive(f, p)},
	}
	stall := stalled(p, o)
	progress := reconciling(f, p, o, stall)
	worst := verdict{}
	for _, c := range list {
		// A fleet without caps, or whose keys nobody has copied, still serves.
		if c.kind != v1alpha1.ConditionSpendingCapped && c.kind != v1alpha1.ConditionKeysBackedUp {
			worst = mostSevere(worst, c.v)
		}
	}
	ready := readiness(worst, stall, p)

	all := make([]metav1.Condition, 0, len(list)+3)
	add := func(kind string, v verdict) {
		if v.status != "" {
			all = append(all, condition(f, kind, v))
		}
	}
	for _, c := range list {
		add(c.kind, c.v)
	}
	add(v1alpha1.ConditionReady, ready)
	add(v1alpha1.ConditionReconciling, progress)
	add(v1alpha1.ConditionStalled, stall)
	next.Conditions = all
}

// condition completes a verdict. It keeps the transition time of the last condition
// while the status stays the same.
func condition(f *Facts, kind string, v verdict) metav1.Condition {
	since := metav1.Time{Time: f.Now}
	if last := meta.FindStatusCondition(f.Pool.Status.Conditions, kind); last != nil && last.Status == v.status {
		since = last.LastTransitionTime
	}
	return metav1.Condition{
		Type: kind, Status: v.status, Reason: v.reason, Message: shortened(v.message, maxMessage),
		ObservedGeneration: f.Pool.Generation, LastTransitionTime: since,
	}
}

func names(refs []apply.Ref) string {
	all := make([]string, 0, len(refs))
	for _, r := range refs {
		all = append(all, r.String())
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// shortened cuts a text to at most maxBytes bytes, between two characters.
func shortened(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	const dots = "…"
	return strings.ToValidUTF8(text[:maxBytes-len(dots)], "") + dots
}
