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

// Outcome is the result of writing a plan.
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
	next.DesiredReplicas = f.Fleet.live()
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
		{v1alpha1.ConditionSpendingCapped, spendingCapped(f)},
		{v1alpha1.ConditionAvailable, available(f, p, o)},
		{v1alpha1.ConditionAutoscalingActive, autoscalingActive(f, p)},
	}
	stall := stalled(p, o)
	progress := reconciling(f, p, o, stall)
	worst := verdict{}
	for _, c := range list {
		if c.kind != v1alpha1.ConditionSpendingCapped { // a fleet without caps still serves
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

// mostSevere returns the more severe of two verdicts, where False is more severe than
// Unknown. Of two equally severe verdicts it returns the first. It returns the zero verdict
// if neither is False or Unknown.
func mostSevere(worst, v verdict) verdict {
	switch {
	case v.status == "", v.status == metav1.ConditionTrue, worst.status == metav1.ConditionFalse:
		return worst
	case v.status == metav1.ConditionFalse, worst.status == "":
		return v
	default:
		return worst
	}
}

// readiness derives Ready from the most severe verdict and the stall. False takes
// precedence, because it matters most to clients. A stall takes precedence over
// NotDeployed, which it causes, and over Unknown.
func readiness(worst, stall verdict, p *Plan) verdict {
	switch {
	case worst.status == metav1.ConditionFalse && (stall.status == "" || worst.reason != v1alpha1.ReasonNotDeployed):
		return worst
	case stall.status != "":
		return conditionFalse(stall.reason, stall.message)
	case worst.status != "":
		return worst
	case p.Paused:
		return conditionTrue(v1alpha1.ReasonPaused, "the fleet is ready; spec.paused is true, so the operator changes nothing")
	default:
		return conditionTrue(v1alpha1.ReasonReady, "the fleet serves the pool")
	}
}

func accepted(f *Facts, p *Plan) verdict {
	if len(p.Faults) > 0 {
		return invalid(p)
	}
	return conditionTrue(v1alpha1.ReasonValid, "the spec is valid"+unmonitored(f))
}

func invalid(p *Plan) verdict {
	return conditionFalse(p.FaultReason, firstSentences(p.Faults, 5))
}

// unmonitored returns the end of a message. It names the monitoring objects that are
// enabled, although the cluster lacks their kinds; both are enabled by default. It is empty
// if there are none. A missing kind is not a fault of the spec.
func unmonitored(f *Facts) string {
	if f.isUnread(PartCapabilities) {
		return ""
	}
	var kinds, fields []string
	for _, m := range []struct {
		wanted v1alpha1.Switch
		has    bool
		kind   string
		field  string
	}{
		{f.Pool.Spec.Monitoring.PodMonitor, f.Capabilities.PodMonitor, build.KindPodMonitor.Kind, "spec.monitoring.podMonitor"},
		{f.Pool.Spec.Monitoring.PrometheusRule, f.Capabilities.PrometheusRule, build.KindPrometheusRule.Kind, "spec.monitoring.prometheusRule"},
	} {
		if m.wanted != v1alpha1.Disabled && !m.has {
			kinds, fields = append(kinds, m.kind), append(fields, m.field)
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return "; no " + strings.Join(kinds, " and no ") + " is made until the Prometheus operator's CRDs are installed (" +
		strings.Join(fields, " and ") + ": Disabled makes none)"
}

// stalled is the zero verdict unless a person has to act.
func stalled(p *Plan, o *Outcome) verdict {
	if len(p.Faults) > 0 {
		v := invalid(p)
		return conditionTrue(v.reason, v.message)
	}
	if p.Paused {
		return verdict{}
	}
	if refs := o.Result.Foreign; len(refs) > 0 {
		message := "in this namespace " + names(refs) +
			" belongs to somebody else and was not changed: delete or rename it, or give the RelayPool another name"
		if withheld := o.Result.Withheld; len(withheld) > 0 {
			message += "; until then " + names(withheld) + " is not made or changed, because its pods would use it"
		}
		return conditionTrue(v1alpha1.ReasonForeignObject, message)
	}
	if refused := o.Result.Refused; len(refused) > 0 {
		parts := make([]string, 0, len(refused))
		for _, r := range refused {
			parts = append(parts, "the API server refused "+r.String()+" ("+r.Reason+"): "+r.Message)
		}
		slices.Sort(parts)
		return conditionTrue(v1alpha1.ReasonRefused, firstSentences(parts, 3))
	}
	for _, problem := range p.Keys.Problems {
		if problem.Reason == v1alpha1.ReasonRotationFailed {
			return conditionTrue(problem.Reason, problem.Message)
		}
	}
	return verdict{}
}

func names(refs []apply.Ref) string {
	all := make([]string, 0, len(refs))
	for _, r := range refs {
		all = append(all, r.String())
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// reconciling is the zero verdict if the fleet runs as declared. It is also zero while the
// RelayPool is paused or stalled, or while nothing can be deployed.
func reconciling(f *Facts, p *Plan, o *Outcome, stall verdict) verdict {
	switch {
	case p.Paused || stall.status != "":
		return verdict{}
	case p.Keys.Rotating:
		return conditionTrue(v1alpha1.ReasonRotating, "the fee payers' keys are being rotated: status.rotation has the step and what it waits for")
	case o.Failed:
		return conditionTrue(v1alpha1.ReasonProgressing, "not everything could be written; the operator's log says why, and the writes are repeated")
	case len(o.Result.Waiting) > 0:
		return conditionTrue(v1alpha1.ReasonProgressing, names(o.Result.Waiting)+" is being deleted, and is made again afterwards")
	case len(o.Result.Contested) > 0:
		return conditionTrue(v1alpha1.ReasonProgressing, names(o.Result.Contested)+
			" is changed by somebody else repeatedly, and is repaired less often: find out who writes it (kubectl get --show-managed-fields -o yaml)")
	case !p.Deploy || f.isUnread(PartFleet):
		return verdict{}
	case p.RecordInitialised:
		return conditionTrue(v1alpha1.ReasonProgressing, "the gate has opened, and the fleet starts")
	case rollingOut(f) || deployed(&o.Result):
		return conditionTrue(v1alpha1.ReasonProgressing, "pods are being created or replaced: the condition Available shows the progress")
	default:
		return verdict{}
	}
}

// deployed reports whether this pass has written the Deployment. The Deployment's status
// was read before that write, and could make the rollout look complete.
func deployed(r *apply.Result) bool {
	written := func(ref apply.Ref) bool { return ref.Kind == build.KindDeployment }
	return slices.ContainsFunc(r.Applied, written) || slices.ContainsFunc(r.Repaired, written)
}

// shortened cuts a text to at most maxBytes bytes, between two characters.
func shortened(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	const dots = "…"
	return strings.ToValidUTF8(text[:maxBytes-len(dots)], "") + dots
}
