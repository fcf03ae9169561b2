package build

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// nonRoot is the user and group of the image, and the group of mounted files.
	nonRoot = 65532
	// fileMode lets the files' owner (root) and the group nonRoot read the files. It lets nobody
	// else read them.
	fileMode = 0o440
	// filesVolume and temporaryVolume are the names of the pods' volumes.
	filesVolume     = "files"
	temporaryVolume = "temporary-files"
)

// podSpec makes what the fleet's pods and the pods of rotation Jobs have in common: the
// restricted pod security standard, a read-only root file system, no service account
// token, and the scheduling.
func podSpec(in Input, container *corev1ac.ContainerApplyConfiguration, files *corev1ac.ProjectedVolumeSourceApplyConfiguration) *corev1ac.PodSpecApplyConfiguration {
	template := &in.Pool.Spec.Template
	spec := corev1ac.PodSpec().
		WithServiceAccountName(in.Pool.Name).
		WithAutomountServiceAccountToken(false).
		// With service links, Kubernetes would set variables named after Services. The variables
		// of a Service called relaypool would have the prefix of the relay's own variables.
		WithEnableServiceLinks(false).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithRunAsUser(nonRoot).
			WithRunAsGroup(nonRoot).
			WithFSGroup(nonRoot).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(container.
			WithImage(image(in)).
			WithTerminationMessagePath(contract.TerminationLog).
			WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
			WithVolumeMounts(corev1ac.VolumeMount().WithName(filesVolume).WithMountPath(contract.Root).WithReadOnly(true)).
			WithSecurityContext(corev1ac.SecurityContext().
				WithAllowPrivilegeEscalation(false).
				WithReadOnlyRootFilesystem(true).
				WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))).
		WithVolumes(corev1ac.Volume().WithName(filesVolume).WithProjected(files.WithDefaultMode(fileMode)))
	schedule(spec, template)
	return spec
}

// relayPodSpec makes the spec of the fleet's pods. Its grace period is long enough for a whole drain.
func relayPodSpec(in Input) *corev1ac.PodSpecApplyConfiguration {
	return podSpec(in, relayContainer(in), serveFiles(in)).
		WithVolumes(corev1ac.Volume().WithName(temporaryVolume).WithEmptyDir(corev1ac.EmptyDirVolumeSource())).
		WithTerminationGracePeriodSeconds(int64(contract.TerminationGrace / time.Second))
}

// relayContainer makes the relay's container. Its preStop hook waits before SIGTERM, so that load
// balancers forget the pod first.
func relayContainer(in Input) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(RelayContainer).
		WithArgs("serve").
		WithEnv(serveEnvironment(in)...).
		WithVolumeMounts(corev1ac.VolumeMount().WithName(temporaryVolume).WithMountPath(contract.TemporaryFolder)).
		WithResources(resources(in.Pool.Spec.Template.Resources)).
		WithPorts(
			corev1ac.ContainerPort().WithName(portAPI).WithContainerPort(contract.APIPort).WithProtocol(corev1.ProtocolTCP),
			corev1ac.ContainerPort().WithName(portOperations).WithContainerPort(contract.OperationsPort).WithProtocol(corev1.ProtocolTCP)).
		WithLivenessProbe(liveness()).
		WithReadinessProbe(readiness()).
		WithLifecycle(corev1ac.Lifecycle().
			WithPreStop(corev1ac.LifecycleHandler().
				WithSleep(corev1ac.SleepAction().WithSeconds(int64(contract.PreStop / time.Second)))))
}

func image(in Input) string {
	if in.Pool.Spec.Image != "" {
		return in.Pool.Spec.Image
	}
	return in.Image
}

// convert turns a user's API object into its apply configuration, which has the same form in
// JSON.
func convert[T any](from any) *T {
	to := new(T)
	content, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(content, to)
	}
	if err != nil {
		panic(fmt.Sprintf("build: %T has other JSON than %T: %v", from, to, err))
	}
	return to
}
