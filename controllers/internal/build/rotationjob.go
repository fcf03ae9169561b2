package build

import (
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/relaypool/relaypool/relay/contract"
)

// Rotation describes one step of a fee payer rotation. The step runs as a Job.
type Rotation struct {
	Step Step
	// Revision is the target revision of the rotation.
	Revision int32
	// From are the old payers' keys, and To are the new payers' keys. StepDrain needs only From.
	// StepSweep moves lamports to the payer of To whose Secret's name sorts first.
	From, To []PayerMount
}

const (
	// jobRetries is how many pods may fail before a person has to decide.
	jobRetries = 6
	// jobGraceSeconds gives a stopped step time to finish sending. Killing the pod earlier is
	// safe too.
	jobGraceSeconds = 30
)

// RotationJob makes the Job that runs a step of a rotation. A Job's template cannot
// change: the caller has to keep or delete an existing Job.
func RotationJob(in Input, r Rotation) Object {
	name := JobName(in.Pool.Name, r.Revision, r.Step)
	labels := jobLabels(in.Pool.Name)
	return Object{KindJob, name, batchv1ac.Job(name, in.Pool.Namespace).
		WithLabels(labels).
		WithSpec(batchv1ac.JobSpec().
			WithCompletions(1).
			WithParallelism(1).
			WithBackoffLimit(jobRetries).
			// Never two pods at once: a new pod waits until the old one has ended.
			WithPodReplacementPolicy(batchv1.Failed).
			// An unfinished step must not use up the retries, because the chain or the database
			// can be unavailable for hours.
			WithPodFailurePolicy(batchv1ac.PodFailurePolicy().WithRules(
				batchv1ac.PodFailurePolicyRule().
					WithAction(batchv1.PodFailurePolicyActionIgnore).
					WithOnExitCodes(batchv1ac.PodFailurePolicyOnExitCodesRequirement().
						WithContainerName(RelayContainer).
						WithOperator(batchv1.PodFailurePolicyOnExitCodesOpIn).
						WithValues(contract.ExitUnfinished)),
				// When lamports are missing, a person has to send some. The Job fails at once,
				// not after all retries.
				batchv1ac.PodFailurePolicyRule().
					WithAction(batchv1.PodFailurePolicyActionFailJob).
					WithOnExitCodes(batchv1ac.PodFailurePolicyOnExitCodesRequirement().
						WithContainerName(RelayContainer).
						WithOperator(batchv1.PodFailurePolicyOnExitCodesOpIn).
						WithValues(contract.ExitShort)),
				// The loss of a node must not use up the retries either.
				batchv1ac.PodFailurePolicyRule().
					WithAction(batchv1.PodFailurePolicyActionIgnore).
					WithOnPodConditions(batchv1ac.PodFailurePolicyOnPodConditionsPattern().
						WithType(corev1.DisruptionTarget).
						WithStatus(corev1.ConditionTrue)))).
			WithTemplate(finishJob(in, rotationTemplate(in, r))))}
}

// rotationTemplate makes the template of a Job's pods, without spec.template.podTemplate.
func rotationTemplate(in Input, r Rotation) *corev1ac.PodTemplateSpecApplyConfiguration {
	template := &in.Pool.Spec.Template
	return corev1ac.PodTemplateSpec().
		WithLabels(mergeMaps(template.Labels, jobLabels(in.Pool.Name))).
		WithAnnotations(template.Annotations).
		WithSpec(podSpec(in, rotationContainer(in, r), rotationFiles(in, r)).
			// A failed pod is kept for its log, and a new pod tries again.
			WithRestartPolicy(corev1.RestartPolicyNever).
			WithTerminationGracePeriodSeconds(jobGraceSeconds))
}

func jobLabels(pool string) map[string]string {
	labels := Labels(pool)
	labels[LabelComponent] = ComponentRotation
	return labels
}

func rotationContainer(in Input, r Rotation) *corev1ac.ContainerApplyConfiguration {
	var e environment
	e.shared(&in.Pool.Spec)
	return corev1ac.Container().
		WithName(RelayContainer).
		WithArgs(rotationArgs(in, r)...).
		WithEnv(e...).
		// A rotation signs a handful of transactions, so its pod needs few resources. If the
		// pod requested as much as the fleet's pods, it might not be scheduled.
		WithResources(corev1ac.ResourceRequirements().
			WithRequests(corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("50m"),
				corev1.ResourceMemory: resource.MustParse("64Mi"),
			}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}))
}

// rotationArgs returns the arguments with which the step runs the command `relay sweep`.
func rotationArgs(in Input, r Rotation) []string {
	var args []string
	addFiles := func(flag string, mounts []PayerMount) {
		for _, file := range payerFiles(mounts) {
			args = append(args, flag+"="+file)
		}
	}
	payers := in.Pool.Spec.FeePayers
	switch r.Step {
	case StepFund:
		args = append(args, "sweep", "fund")
		addFiles("--from", r.From)
		addFiles("--to", r.To)
		if payers.TargetBalanceLamports != nil {
			args = append(args, "--target="+strconv.FormatInt(*payers.TargetBalanceLamports, 10))
		}
		if payers.MinimumBalanceLamports != nil {
			args = append(args, "--keep="+strconv.FormatInt(*payers.MinimumBalanceLamports, 10))
		}
	case StepDrain:
		args = append(args, "sweep", "drain")
		addFiles("--from", r.From)
	case StepSweep:
		args = append(args, "sweep", "all")
		addFiles("--from", r.From)
		// All that is left goes to one address, because each new payer has its target already.
		addFiles("--to", first(r.To))
	}
	return append(args, "--termination-log="+contract.TerminationLog)
}

func rotationFiles(in Input, r Rotation) *corev1ac.ProjectedVolumeSourceApplyConfiguration {
	var f files
	f.shared(in.Pool)
	mounts := r.From
	switch r.Step {
	case StepFund:
		mounts = slices.Concat(r.From, r.To)
	case StepSweep:
		mounts = slices.Concat(r.From, first(r.To))
	case StepDrain:
	}
	f.payers(mounts)
	return f.volume()
}

// first returns the first mount by name, regardless of the given order.
func first(mounts []PayerMount) []PayerMount {
	s := sorted(mounts)
	return s[:min(len(s), 1)]
}
