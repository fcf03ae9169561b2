package pool

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// exposed returns the zero verdict if neither spec.api.ingress nor spec.api.gateway is set.
func exposed(f *Facts) verdict {
	api := &f.Pool.Spec.API
	if api.Ingress == nil && api.Gateway == nil {
		return verdict{}
	}
	if f.isUnread(PartExposure) || api.Gateway != nil && f.isUnread(PartCapabilities) {
		return unreadable("what leads clients to the fleet")
	}
	v := mostSevere(mostSevere(verdict{}, ingressVerdict(f)), routeVerdict(f))
	if v.status == "" {
		v = conditionTrue(v1alpha1.ReasonExposed, "clients outside of the cluster reach the fleet")
	}
	if api.ClientIPHeader == "" && (api.RequestsPerMinute == nil || *api.RequestsPerMinute > 0) {
		v.message += "; spec.api.clientIPHeader is not set, so all clients behind the proxy share one limit of requests: set it to the header in which the proxy writes the client's address, such as X-Real-IP"
	}
	return v
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
	if api.Ingress == nil && api.Gateway == nil {
		return nil
	}
	if f.isUnread(PartExposure) || f.isUnread(PartCapabilities) {
		return f.Pool.Status.API
	}
	s := &v1alpha1.APIStatus{Addresses: unique(f.Exposure.Addresses)}
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

// unique returns the texts sorted, each once, because the status has sets.
func unique(texts []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(texts)))
}
