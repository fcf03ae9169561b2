package apply_test

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	batchac "k8s.io/client-go/applyconfigurations/batch/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

// shape determines the tests' objects. Like the objects of a fleet, they have named ports,
// associative and atomic lists, quantities, and some defaults set and others left out.
type shape struct {
	replicas *int32
	image    string
	hpa      bool
	label    string // an extra label on the ConfigMap
}

func ptr[T any](v T) *T { return &v }

func podTemplate(s shape) *coreac.PodTemplateSpecApplyConfiguration {
	return coreac.PodTemplateSpec().
		WithLabels(build.Labels(poolName)).
		WithAnnotations(map[string]string{"relaypool.dev/rollout-hash": "abc"}).
		WithSpec(coreac.PodSpec().
			WithServiceAccountName(poolName).
			WithAutomountServiceAccountToken(false).
			WithEnableServiceLinks(false).
			WithHostNetwork(false).
			WithTerminationGracePeriodSeconds(60).
			WithSecurityContext(coreac.PodSecurityContext().WithRunAsNonRoot(true).
				WithSeccompProfile(coreac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
			WithTopologySpreadConstraints(coreac.TopologySpreadConstraint().
				WithMaxSkew(1).WithTopologyKey("kubernetes.io/hostname").WithWhenUnsatisfiable(corev1.ScheduleAnyway).
				WithLabelSelector(metaac.LabelSelector().WithMatchLabels(build.Selector(poolName))).
				WithMatchLabelKeys("pod-template-hash")).
			WithContainers(coreac.Container().
				WithName(build.RelayContainer).
				WithImage(s.image).
				WithArgs("serve").
				WithPorts(coreac.ContainerPort().WithName("http").WithContainerPort(8080),
					coreac.ContainerPort().WithName("operations").WithContainerPort(9090).WithProtocol(corev1.ProtocolTCP)).
				WithEnv(coreac.EnvVar().WithName("A").WithValue("1"), coreac.EnvVar().WithName("EMPTY").WithValue(""),
					coreac.EnvVar().WithName("POD").WithValueFrom(coreac.EnvVarSource().WithFieldRef(
						coreac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.name")))).
				WithResources(coreac.ResourceRequirements().
					WithRequests(corev1.ResourceList{"cpu": resource.MustParse("1000m"), "memory": resource.MustParse("256Mi")}).
					WithLimits(corev1.ResourceList{"memory": resource.MustParse("1024Mi")})).
				WithReadinessProbe(coreac.Probe().WithHTTPGet(coreac.HTTPGetAction().
					WithPath("/readyz").WithPort(intstr.FromString("operations")))).
				WithSecurityContext(coreac.SecurityContext().WithReadOnlyRootFilesystem(true).
					WithAllowPrivilegeEscalation(false).
					WithCapabilities(coreac.Capabilities().WithDrop("ALL"))).
				WithVolumeMounts(coreac.VolumeMount().WithName("config").WithMountPath("/etc/relaypool/config").WithReadOnly(true),
					coreac.VolumeMount().WithName("scratch").WithMountPath("/tmp"))).
			WithVolumes(
				coreac.Volume().WithName("config").WithConfigMap(coreac.ConfigMapVolumeSource().WithName(poolName)),
				coreac.Volume().WithName("scratch").WithEmptyDir(coreac.EmptyDirVolumeSource())))
}

func deployment(s shape) build.Object {
	spec := appsac.DeploymentSpec().
		WithSelector(metaac.LabelSelector().WithMatchLabels(build.Selector(poolName))).
		WithStrategy(appsac.DeploymentStrategy().WithRollingUpdate(appsac.RollingUpdateDeployment().
			WithMaxSurge(intstr.FromInt32(1)).WithMaxUnavailable(intstr.FromInt32(0)))).
		WithTemplate(podTemplate(s))
	spec.Replicas = s.replicas
	return build.Object{Kind: build.KindDeployment, Name: poolName,
		Config: appsac.Deployment(poolName, "").WithLabels(build.Labels(poolName)).WithSpec(spec)}
}

func configMap(s shape) build.Object {
	c := coreac.ConfigMap(poolName, "").WithLabels(build.Labels(poolName)).
		WithData(map[string]string{"endpoints.yaml": "- name: one\n"})
	if s.label != "" {
		c.WithLabels(map[string]string{s.label: "yes"})
	}
	return build.Object{Kind: build.KindConfigMap, Name: poolName, Config: c}
}

func horizontalPodAutoscaler() build.Object {
	return build.Object{Kind: build.KindHorizontalPodAutoscaler, Name: poolName,
		Config: autoscalingac.HorizontalPodAutoscaler(poolName, "").WithLabels(build.Labels(poolName)).WithSpec(
			autoscalingac.HorizontalPodAutoscalerSpec().WithMinReplicas(2).WithMaxReplicas(9).
				WithScaleTargetRef(autoscalingac.CrossVersionObjectReference().WithAPIVersion("apps/v1").WithKind("Deployment").WithName(poolName)).
				WithMetrics(autoscalingac.MetricSpec().WithType(autoscalingv2.ExternalMetricSourceType).WithExternal(
					autoscalingac.ExternalMetricSource().
						WithMetric(autoscalingac.MetricIdentifier().WithName("relaypool_backlog_submissions").
							WithSelector(metaac.LabelSelector().WithMatchLabels(map[string]string{"pool": poolName}))).
						WithTarget(autoscalingac.MetricTarget().WithType(autoscalingv2.AverageValueMetricType).WithAverageValue(resource.MustParse("20"))))).
				WithBehavior(autoscalingac.HorizontalPodAutoscalerBehavior().WithScaleDown(
					autoscalingac.HPAScalingRules().WithStabilizationWindowSeconds(300).WithPolicies(
						autoscalingac.HPAScalingPolicy().WithType(autoscalingv2.PodsScalingPolicy).WithValue(1).WithPeriodSeconds(60)))))}
}

func job(name string) build.Object {
	return build.Object{Kind: build.KindJob, Name: name,
		Config: batchac.Job(name, "").WithLabels(build.Labels(poolName)).WithSpec(batchac.JobSpec().
			WithBackoffLimit(3).
			WithTemplate(coreac.PodTemplateSpec().WithSpec(coreac.PodSpec().
				WithRestartPolicy(corev1.RestartPolicyNever).
				WithContainers(coreac.Container().WithName(build.RelayContainer).WithImage("relay:1")))))}
}

func fixedObjects(s shape) []build.Object {
	out := []build.Object{
		{Kind: build.KindServiceAccount, Name: poolName, Config: coreac.ServiceAccount(poolName, "").
			WithLabels(build.Labels(poolName)).WithAutomountServiceAccountToken(false)},
		configMap(s),
		{Kind: build.KindService, Name: poolName, Config: coreac.Service(poolName, "").
			WithLabels(build.Labels(poolName)).WithSpec(coreac.ServiceSpec().WithSelector(build.Selector(poolName)).
			WithPorts(coreac.ServicePort().WithName("http").WithPort(80).WithTargetPort(intstr.FromString("http")).
				WithProtocol(corev1.ProtocolTCP).WithAppProtocol("http")))},
		{Kind: build.KindPodDisruptionBudget, Name: poolName, Config: policyac.PodDisruptionBudget(poolName, "").
			WithLabels(build.Labels(poolName)).WithSpec(policyac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(metaac.LabelSelector().WithMatchLabels(build.Selector(poolName))))},
		{Kind: build.KindNetworkPolicy, Name: poolName, Config: networkingac.NetworkPolicy(poolName, "").
			WithLabels(build.Labels(poolName)).WithSpec(networkingac.NetworkPolicySpec().
			WithPodSelector(metaac.LabelSelector().WithMatchLabels(build.Selector(poolName))).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(networkingac.NetworkPolicyIngressRule().WithPorts(
				networkingac.NetworkPolicyPort().WithPort(intstr.FromInt32(8080)).WithProtocol(corev1.ProtocolTCP))))},
		deployment(s),
	}
	if s.hpa {
		out = append(out, horizontalPodAutoscaler())
	}
	return out
}

func unstructuredObject(kind build.Object, spec map[string]any) build.Object {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(kind.Kind)
	u.SetName(kind.Name)
	u.SetLabels(build.Labels(poolName))
	kind.Config = client.ApplyConfigurationFromUnstructured(u)
	return kind
}

func podMonitor() build.Object {
	return unstructuredObject(build.Object{Kind: build.KindPodMonitor, Name: poolName}, map[string]any{
		"selector":            map[string]any{"matchLabels": map[string]any{build.LabelPool: poolName}},
		"podMetricsEndpoints": []any{map[string]any{"port": "operations", "interval": "30s"}},
	})
}

func scaledObject() build.Object {
	return unstructuredObject(build.Object{Kind: build.KindScaledObject, Name: poolName}, map[string]any{
		"scaleTargetRef":  map[string]any{"name": poolName},
		"minReplicaCount": int64(2), "maxReplicaCount": int64(9),
		"triggers": []any{map[string]any{"type": "metrics-api"}},
	})
}
