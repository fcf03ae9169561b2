package build

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

// dnsPort is the port of DNS servers.
const dnsPort = 53

type peer = networkingv1ac.NetworkPolicyPeerApplyConfiguration

// networkPolicy confines the fleet's pods and the pods of rotation Jobs, which reach the
// same database and chain.
func networkPolicy(in Input) []Object {
	p := in.Pool.Spec.NetworkPolicy
	if p == nil {
		return nil
	}
	name := in.Pool.Name
	return []Object{{KindNetworkPolicy, name, networkingv1ac.NetworkPolicy(name, in.Pool.Namespace).
		WithLabels(Labels(name)).
		WithSpec(networkingv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{LabelName: Application, LabelInstance: name})).
			WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
			WithIngress(ingress(in, p)...).
			WithEgress(egress(p)...))}}
}

func ingress(in Input, p *v1alpha1.NetworkPolicy) []*networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration {
	rules := []*networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration{
		// Without APIFrom, the rule has no peers and admits everybody. That is the documented
		// default.
		networkingv1ac.NetworkPolicyIngressRule().WithPorts(port(corev1.ProtocolTCP, contract.APIPort)).WithFrom(peers(p.APIFrom)...),
	}
	operations := peers(p.OperationsFrom)
	if in.OperatorNamespace != "" {
		operations = append([]*peer{operatorPeer(in)}, operations...)
	}
	// A rule without peers would admit everybody. So if nobody may reach the operations port,
	// there is no rule for it.
	if len(operations) > 0 {
		rules = append(rules, networkingv1ac.NetworkPolicyIngressRule().
			WithPorts(port(corev1.ProtocolTCP, contract.OperationsPort)).
			WithFrom(operations...))
	}
	return rules
}

func operatorPeer(in Input) *peer {
	p := networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(metav1ac.LabelSelector().
		WithMatchLabels(map[string]string{corev1.LabelMetadataName: in.OperatorNamespace}))
	if len(in.OperatorLabels) > 0 {
		p.WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(in.OperatorLabels))
	}
	return p
}

func egress(p *v1alpha1.NetworkPolicy) []*networkingv1ac.NetworkPolicyEgressRuleApplyConfiguration {
	// Requests to DNS may go anywhere, because the cluster's DNS servers may be pods, or have an
	// address on the node.
	rules := []*networkingv1ac.NetworkPolicyEgressRuleApplyConfiguration{
		networkingv1ac.NetworkPolicyEgressRule().WithPorts(port(corev1.ProtocolUDP, dnsPort), port(corev1.ProtocolTCP, dnsPort)),
	}
	for _, group := range [][]v1alpha1.Destination{p.Database, p.RPC, p.Router, p.Signers} {
		for _, d := range group {
			rules = append(rules, networkingv1ac.NetworkPolicyEgressRule().
				WithTo(destination(d)).
				WithPorts(port(corev1.ProtocolTCP, d.Port)))
		}
	}
	return rules
}

func destination(d v1alpha1.Destination) *peer {
	if d.CIDR != "" {
		return networkingv1ac.NetworkPolicyPeer().WithIPBlock(networkingv1ac.IPBlock().WithCIDR(d.CIDR))
	}
	return convert[peer](networkingv1.NetworkPolicyPeer{NamespaceSelector: d.NamespaceSelector, PodSelector: d.PodSelector})
}

func peers(from []networkingv1.NetworkPolicyPeer) []*peer {
	converted := make([]*peer, len(from))
	for i := range from {
		converted[i] = convert[peer](from[i])
	}
	return converted
}

func port(protocol corev1.Protocol, number int32) *networkingv1ac.NetworkPolicyPortApplyConfiguration {
	return networkingv1ac.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(number))
}
