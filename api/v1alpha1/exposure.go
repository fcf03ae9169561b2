package v1alpha1

// ServiceType is the type of a Service.
//
// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
type ServiceType string

// TrafficPolicy says which pods get the traffic that reaches a node from outside of the cluster.
//
// +kubebuilder:validation:Enum=Cluster;Local
type TrafficPolicy string

// Service changes the Service that leads clients to the pods.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'LoadBalancer' || !has(self.loadBalancerClass) && !has(self.loadBalancerSourceRanges)",message="api.service has loadBalancerClass or loadBalancerSourceRanges, and its type is not LoadBalancer: set type to LoadBalancer, or remove them"
// +kubebuilder:validation:XValidation:rule="self.type != 'ClusterIP' || !has(self.externalTrafficPolicy)",message="api.service has externalTrafficPolicy, and its type is ClusterIP: set type to NodePort or LoadBalancer, or remove externalTrafficPolicy"
type Service struct {
	// Type of the Service: ClusterIP, NodePort or LoadBalancer. The last two serve clients
	// outside of the cluster without TLS. Default: ClusterIP.
	// +optional
	// +kubebuilder:default=ClusterIP
	Type ServiceType `json:"type,omitempty"`
	// Annotations of the Service. Default: none.
	// Example: {service.beta.kubernetes.io/aws-load-balancer-scheme: internal}
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && self[k].size() <= 8192)",message="api.service.annotations has a key that no annotation can have, or a value of more than 8192 characters: expected keys such as example.com/owner"
	Annotations map[string]string `json:"annotations,omitempty"`
	// LoadBalancerClass is the implementation that makes the load balancer. Default: the
	// cluster's. It cannot change while the type is LoadBalancer. Example: service.k8s.aws/nlb
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	LoadBalancerClass string `json:"loadBalancerClass,omitempty"`
	// LoadBalancerSourceRanges are the address ranges that may use the load balancer. Default:
	// all. Example: [203.0.113.0/24]
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(r, isCIDR(r))",message="api.service.loadBalancerSourceRanges has an item that is no address range such as 203.0.113.0/24: write the address of the network, a slash and the length of its prefix"
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`
	// ExternalTrafficPolicy says which pods get the traffic that reaches a node: Cluster for
	// all, or Local for those of the same node, which keeps the address of the client. Default:
	// Cluster.
	// +optional
	ExternalTrafficPolicy TrafficPolicy `json:"externalTrafficPolicy,omitempty"`
}

// Ingress leads clients to the pods through an ingress controller.
type Ingress struct {
	// ClassName is the IngressClass. Default: the cluster's default class. Example: nginx
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	ClassName string `json:"className,omitempty"`
	// Hosts are the host names to serve, each with all paths. Example: [relay.example]
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Pattern=`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:items:MaxLength=253
	Hosts []string `json:"hosts"`
	// Annotations of the Ingress, for its controller. Default: only
	// nginx.ingress.kubernetes.io/proxy-read-timeout, which fits the longest wait. A value given
	// here has priority. Example: {nginx.ingress.kubernetes.io/limit-rps: "20"}
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && self[k].size() <= 8192)",message="api.ingress.annotations has a key that no annotation can have, or a value of more than 8192 characters: expected keys such as example.com/owner"
	Annotations map[string]string `json:"annotations,omitempty"`
	// TLS says where the certificate for the hosts is. Default: none, and the hosts are served
	// without TLS, or with a certificate of the controller.
	// +optional
	TLS *IngressTLS `json:"tls,omitempty"`
}

// IngressTLS says where an Ingress' certificate is.
//
// +kubebuilder:validation:ExactlyOneOf=secretName;certManager
type IngressTLS struct {
	// SecretName is the name of your Secret with tls.crt and tls.key, which only the ingress
	// controller reads. Default: none; either secretName or certManager is set.
	// Example: relay-certificate
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	SecretName string `json:"secretName,omitempty"`
	// CertManager has cert-manager issue the certificate, into a Secret that it names after the
	// RelayPool.
	// +optional
	CertManager *CertManager `json:"certManager,omitempty"`
}

// CertManager names the issuer of a certificate.
//
// +kubebuilder:validation:ExactlyOneOf=clusterIssuer;issuer
type CertManager struct {
	// ClusterIssuer is the name of a ClusterIssuer. Default: none; either clusterIssuer or issuer
	// is set. Example: letsencrypt
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	ClusterIssuer string `json:"clusterIssuer,omitempty"`
	// Issuer is the name of an Issuer in the RelayPool's namespace. Default: none; either
	// clusterIssuer or issuer is set. Example: internal
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Issuer string `json:"issuer,omitempty"`
}

// Gateway leads clients to the pods through Gateways of the Gateway API. Certificates are in the
// Gateways' listeners.
type Gateway struct {
	// ParentRefs are the Gateways that serve clients.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	ParentRefs []GatewayReference `json:"parentRefs"`
	// Hostnames are the host names to serve. Default: those of the Gateways' listeners.
	// Example: [relay.example]
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Pattern=`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:items:MaxLength=253
	Hostnames []string `json:"hostnames,omitempty"`
	// Annotations of the HTTPRoute. Default: none. Example: {example.com/owner: payments}
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && self[k].size() <= 8192)",message="api.gateway.annotations has a key that no annotation can have, or a value of more than 8192 characters: expected keys such as example.com/owner"
	Annotations map[string]string `json:"annotations,omitempty"`
}

// GatewayReference names a Gateway, or one of its listeners.
type GatewayReference struct {
	// Name is the Gateway's name. Example: public
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Namespace is the Gateway's namespace. A listener of it has to allow routes of the RelayPool's.
	// Default: the RelayPool's. Example: gateways
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
	// SectionName is the name of a listener. Default: every listener that allows the route.
	// Example: https
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	SectionName string `json:"sectionName,omitempty"`
}

// The types of the Service.
const (
	ServiceClusterIP    ServiceType = "ClusterIP"
	ServiceNodePort     ServiceType = "NodePort"
	ServiceLoadBalancer ServiceType = "LoadBalancer"
)

// TrafficPolicyLocal keeps the addresses of the clients.
const TrafficPolicyLocal TrafficPolicy = "Local"
