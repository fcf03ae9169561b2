package build

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

// Names of the container's ports, which Services, probes and monitors refer to.
const (
	portAPI        = "api"
	portOperations = "operations"
)

// service leads clients to the ready pods. It omits the operations port, because metrics
// and the backlog are not for clients.
func service(in Input) Object {
	name := in.Pool.Name
	spec := corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithSelector(Selector(name)).
		WithPorts(servicePort(portAPI, contract.APIPort))
	config := corev1ac.Service(name, in.Pool.Namespace).WithLabels(Labels(name)).WithSpec(spec)
	if s := in.Pool.Spec.API.Service; s != nil {
		changeService(config.WithAnnotations(s.Annotations), s)
	}
	return Object{KindService, name, config}
}

// changeService sets what the RelayPool declares for the Service.
func changeService(config *corev1ac.ServiceApplyConfiguration, s *v1alpha1.Service) {
	if s.Type != "" {
		config.Spec.WithType(corev1.ServiceType(s.Type))
	}
	if s.LoadBalancerClass != "" {
		config.Spec.WithLoadBalancerClass(s.LoadBalancerClass)
	}
	if s.ExternalTrafficPolicy != "" {
		config.Spec.WithExternalTrafficPolicy(corev1.ServiceExternalTrafficPolicy(s.ExternalTrafficPolicy))
	}
	config.Spec.WithLoadBalancerSourceRanges(s.LoadBalancerSourceRanges...)
}

// operationsService is the Service from which KEDA reads the backlog, because /backlog on
// the API port is subject to the clients' keys and rate limit. It is headless, because no
// load has to be balanced: any pod's answer describes the whole fleet.
func operationsService(in Input) Object {
	name := OperationsServiceName(in.Pool.Name)
	return Object{KindService, name, corev1ac.Service(name, in.Pool.Namespace).
		WithLabels(Labels(in.Pool.Name)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithClusterIP(corev1.ClusterIPNone).
			WithSelector(Selector(in.Pool.Name)).
			WithPorts(servicePort(portOperations, contract.OperationsPort)))}
}

func servicePort(name string, port int32) *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().
		WithName(name).
		WithProtocol(corev1.ProtocolTCP).
		WithPort(port).
		WithTargetPort(intstr.FromString(name))
}
