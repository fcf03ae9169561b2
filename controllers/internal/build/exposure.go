package build

import (
	"strconv"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

// These annotations configure ingress-nginx and cert-manager. By default ingress-nginx ends a
// request after 60 s without a byte of the answer, and a client may wait that long for the outcome
// alone.
const (
	annotationNginxReadTimeout = "nginx.ingress.kubernetes.io/proxy-read-timeout"
	annotationClusterIssuer    = "cert-manager.io/cluster-issuer"
	annotationIssuer           = "cert-manager.io/issuer"
)

// CertificateSecretName returns the name of the Secret into which cert-manager puts the certificate
// of the Ingress.
func CertificateSecretName(pool string) string { return pool + "-tls" }

// exposure returns the objects that lead clients from outside of the cluster to the Service. It
// omits the HTTPRoute if the cluster lacks the kind.
func exposure(in Input) (objects []Object) {
	api := &in.Pool.Spec.API
	if api.Ingress != nil {
		objects = append(objects, publicIngress(in, api.Ingress))
	}
	if api.Gateway != nil && in.Capabilities.HTTPRoute {
		objects = append(objects, httpRoute(in, api.Gateway))
	}
	return objects
}

func publicIngress(in Input, i *v1alpha1.Ingress) Object {
	name := in.Pool.Name
	annotations := mergeMaps(map[string]string{
		annotationNginxReadTimeout: strconv.Itoa(int(contract.LongestRequest / time.Second)),
	}, i.Annotations)
	spec := networkingv1ac.IngressSpec()
	if i.ClassName != "" {
		spec.WithIngressClassName(i.ClassName)
	}
	for _, host := range i.Hosts {
		spec.WithRules(networkingv1ac.IngressRule().WithHost(host).
			WithHTTP(networkingv1ac.HTTPIngressRuleValue().WithPaths(networkingv1ac.HTTPIngressPath().
				WithPath("/").
				WithPathType(networkingv1.PathTypePrefix).
				WithBackend(networkingv1ac.IngressBackend().WithService(networkingv1ac.IngressServiceBackend().
					WithName(name).
					WithPort(networkingv1ac.ServiceBackendPort().WithName(portAPI)))))))
	}
	if i.TLS != nil {
		spec.WithTLS(networkingv1ac.IngressTLS().WithHosts(i.Hosts...).WithSecretName(certificateSecret(name, i.TLS)))
		annotations = mergeMaps(annotations, issuer(i.TLS.CertManager))
	}
	return Object{KindIngress, name, networkingv1ac.Ingress(name, in.Pool.Namespace).
		WithLabels(Labels(name)).
		WithAnnotations(annotations).
		WithSpec(spec)}
}

func certificateSecret(pool string, tls *v1alpha1.IngressTLS) string {
	if tls.CertManager != nil {
		return CertificateSecretName(pool)
	}
	return tls.SecretName
}

// issuer returns the annotation by which cert-manager finds the issuer.
func issuer(c *v1alpha1.CertManager) map[string]string {
	switch {
	case c == nil:
		return nil
	case c.ClusterIssuer != "":
		return map[string]string{annotationClusterIssuer: c.ClusterIssuer}
	default:
		return map[string]string{annotationIssuer: c.Issuer}
	}
}

// httpRoute makes the HTTPRoute. It sets the fields that have defaults in the CRD as well: the lists
// are atomic, so a missing field would look like a difference from the stored object.
func httpRoute(in Input, g *v1alpha1.Gateway) Object {
	parents := make([]any, len(g.ParentRefs))
	for i, ref := range g.ParentRefs {
		parent := map[string]any{"group": KindHTTPRoute.Group, "kind": "Gateway", "name": ref.Name}
		if ref.Namespace != "" {
			parent["namespace"] = ref.Namespace
		}
		if ref.SectionName != "" {
			parent["sectionName"] = ref.SectionName
		}
		parents[i] = parent
	}
	longest := strconv.Itoa(int(contract.LongestRequest/time.Second)) + "s"
	spec := map[string]any{
		"parentRefs": parents,
		"rules": []any{map[string]any{
			"matches": []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}},
			"backendRefs": []any{map[string]any{
				"group": "", "kind": KindService.Kind, "name": in.Pool.Name, "port": int64(contract.APIPort), "weight": int64(1),
			}},
			"timeouts": map[string]any{"request": longest, "backendRequest": longest},
		}},
	}
	if len(g.Hostnames) > 0 {
		hostnames := make([]any, len(g.Hostnames))
		for i, host := range g.Hostnames {
			hostnames[i] = host
		}
		spec["hostnames"] = hostnames
	}
	return optionalObject(in, KindHTTPRoute, optionalMetadata{annotations: g.Annotations}, spec)
}
