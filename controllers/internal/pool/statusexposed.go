package pool

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// exposed returns the zero verdict if spec.api serves no clients outside of the cluster.
func exposed(f *Facts, o *Outcome) verdict {
	api := &f.Pool.Spec.API
	if !servesOutside(api) {
		return verdict{}
	}
	if f.isUnread(PartExposure) || api.Gateway != nil && f.isUnread(PartCapabilities) {
		return unreadable("what leads clients to the fleet")
	}
	v := verdict{}
	for _, way := range []verdict{refusedVerdict(f, o), serviceVerdict(f), ingressVerdict(f), routeVerdict(f)} {
		v = mostSevere(v, way)
	}
	if v.status == "" {
		v = conditionTrue(v1alpha1.ReasonExposed, "clients outside of the cluster reach the fleet")
	}
	v.message += sharedLimit(api)
	return v
}

func servesOutside(api *v1alpha1.API) bool {
	return api.Ingress != nil || api.Gateway != nil || hasPublicService(api)
}

func hasPublicService(api *v1alpha1.API) bool {
	return api.Service != nil && (api.Service.Type == v1alpha1.ServiceNodePort || api.Service.Type == v1alpha1.ServiceLoadBalancer)
}

// sharedLimit returns a remark on a limit of requests that does not hold for each client, because
// relays do not see its address, or because it chooses the address itself; or "".
func sharedLimit(api *v1alpha1.API) string {
	switch {
	case api.ClientIPHeader != "" && hasPublicService(api) && (api.Ingress != nil || api.Gateway != nil):
		return "; clients that reach the Service without the proxy choose their address in spec.api.clientIPHeader, and so their limit of requests: make spec.api.service a ClusterIP, or let nobody else reach it"
	case api.ClientIPHeader != "", api.RequestsPerMinute != nil && *api.RequestsPerMinute == 0:
		return ""
	case api.Ingress != nil || api.Gateway != nil:
		return "; spec.api.clientIPHeader is not set, so all clients behind the proxy share one limit of requests: set it to the header in which the proxy writes the client's address, such as X-Real-IP"
	case api.Service.ExternalTrafficPolicy != v1alpha1.TrafficPolicyLocal:
		return "; spec.api.service.externalTrafficPolicy is not Local, so relays may see a node's address in place of the clients', who then share its limit of requests: set it to Local, or set spec.api.clientIPHeader if a proxy is in front"
	default:
		return ""
	}
}

// refusedVerdict reports the objects of the exposure that the API server refused.
func refusedVerdict(f *Facts, o *Outcome) verdict {
	worst := verdict{}
	for _, r := range o.Result.Refused {
		if r.Name != f.Pool.Name || r.Kind != build.KindService && r.Kind != build.KindIngress && r.Kind != build.KindHTTPRoute {
			continue
		}
		message := refusalMessage(r)
		if r.Kind == build.KindHTTPRoute && r.Reason == apply.UnknownField {
			message += "; the operator makes no route without time limits: install the CRDs of the Gateway API in version 1.2 or newer, or use spec.api.ingress in place of spec.api.gateway"
		}
		worst = mostSevere(worst, conditionFalse(v1alpha1.ReasonRefused, message+"; what was made before, if anything, still serves clients"))
	}
	return worst
}

func serviceVerdict(f *Facts) verdict {
	api, name := &f.Pool.Spec.API, f.Pool.Name
	switch s := f.Exposure.Service; {
	case !hasPublicService(api):
		return verdict{}
	case s == nil || string(s.Spec.Type) != string(api.Service.Type):
		return conditionUnknown(v1alpha1.ReasonPending, "Service "+name+" does not have the type "+string(api.Service.Type)+" yet")
	case s.Spec.Type == corev1.ServiceTypeLoadBalancer && len(s.Status.LoadBalancer.Ingress) == 0:
		return conditionUnknown(v1alpha1.ReasonPending, "no controller has put an address into Service "+name+
			" yet: check that a controller makes load balancers in this cluster, and that spec.api.service.loadBalancerClass names its class")
	default:
		return conditionTrue(v1alpha1.ReasonExposed, "")
	}
}

func ingressVerdict(f *Facts) verdict {
	switch {
	case f.Pool.Spec.API.Ingress == nil:
		return verdict{}
	case len(f.Exposure.Addresses) == 0:
		return conditionUnknown(v1alpha1.ReasonPending, "no controller has put an address into Ingress "+f.Pool.Name+
			" yet: check that an ingress controller runs, and that spec.api.ingress.className names its class")
	default:
		return conditionTrue(v1alpha1.ReasonExposed, "")
	}
}

func routeVerdict(f *Facts) verdict {
	gateway := f.Pool.Spec.API.Gateway
	switch {
	case gateway == nil:
		return verdict{}
	case !f.Capabilities.HTTPRoute:
		return conditionFalse(v1alpha1.ReasonProviderMissing, "the CRD httproutes.gateway.networking.k8s.io is not installed in version v1: install the Gateway API and a controller for it, or use spec.api.ingress in place of spec.api.gateway")
	}
	worst := verdict{}
	for _, ref := range gateway.ParentRefs {
		worst = mostSevere(worst, parentVerdict(f, ref))
	}
	if worst.status == "" {
		return conditionTrue(v1alpha1.ReasonExposed, "")
	}
	return worst
}

// parentVerdict says whether a Gateway serves the HTTPRoute. If several controllers report on the
// Gateway, each has to accept the route.
func parentVerdict(f *Facts, ref v1alpha1.GatewayReference) verdict {
	name := gatewayName(f, ref)
	pending := conditionUnknown(v1alpha1.ReasonPending, "the controller of Gateway "+name+" has not reported on HTTPRoute "+f.Pool.Name+
		" yet: check that the Gateway exists, and that its controller runs")
	worst, found := verdict{}, false
	for _, report := range f.Exposure.Routes {
		if gatewayName(f, report.Gateway) != name {
			continue
		}
		found = true
		for _, c := range []*metav1.Condition{report.Accepted, report.ResolvedRefs} {
			switch {
			case c == nil || c.Status == metav1.ConditionUnknown:
				worst = mostSevere(worst, pending)
			case c.Status == metav1.ConditionFalse:
				worst = mostSevere(worst, conditionFalse(v1alpha1.ReasonNotAccepted, "Gateway "+name+" does not serve HTTPRoute "+f.Pool.Name+
					" ("+c.Type+" is False, "+c.Reason+"): "+strings.TrimSpace(c.Message)))
			}
		}
	}
	if !found {
		return pending
	}
	return worst
}

// gatewayName returns NAMESPACE/NAME of a Gateway, and the name of the listener if there is one.
func gatewayName(f *Facts, ref v1alpha1.GatewayReference) string {
	namespace := ref.Namespace
	if namespace == "" {
		namespace = f.Pool.Namespace
	}
	name := namespace + "/" + ref.Name
	if ref.SectionName != "" {
		name += " (listener " + ref.SectionName + ")"
	}
	return name
}

// apiStatus returns where clients reach the fleet. What could not be read keeps its last value.
func apiStatus(f *Facts) *v1alpha1.APIStatus {
	api := &f.Pool.Spec.API
	if !servesOutside(api) {
		return nil
	}
	if f.isUnread(PartExposure) || f.isUnread(PartCapabilities) {
		return f.Pool.Status.API
	}
	addresses := slices.Clone(f.Exposure.Addresses)
	if service := f.Exposure.Service; service != nil {
		for _, address := range service.Status.LoadBalancer.Ingress {
			addresses = append(addresses, address.Hostname, address.IP)
		}
	}
	s := &v1alpha1.APIStatus{Addresses: unique(addresses)}
	s.Addresses = s.Addresses[:min(len(s.Addresses), maxAddresses)]
	if ingressVerdict(f).status == metav1.ConditionTrue {
		s.Hosts = append(s.Hosts, api.Ingress.Hosts...)
	}
	if routeVerdict(f).status == metav1.ConditionTrue {
		s.Hosts = append(s.Hosts, api.Gateway.Hostnames...)
	}
	s.Hosts = unique(s.Hosts)
	if len(s.Hosts)+len(s.Addresses) == 0 {
		return nil
	}
	return s
}

// maxAddresses is the most addresses that the status may have.
const maxAddresses = 16

// unique returns the texts sorted, each once and without empty ones, because the status has sets.
func unique(texts []string) []string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
	slices.Sort(texts)
	return slices.Compact(texts)
}
