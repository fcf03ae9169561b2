package pool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// A fleet is exposed while the Gateway API is missing, while its CRD is too old, after a newer one
// is installed, and after its controller has accepted the route. An ingress controller answers as
// well. Then both are removed.
func TestAFleetIsExposed(t *testing.T) {
	t.Parallel()
	server := apiservertest.Start(t, apiserver.Options{Controllers: pooltest.Controllers()})
	config, err := server.Config()
	if err != nil {
		t.Fatal(err)
	}
	s := pooltest.NewStand(t, config)
	pooltest.StartKubelet(t, s.Config, s.Namespace, pooltest.KubeletOptions{})
	pooltest.StartOperator(t, s.Config, pooltest.OperatorOptions{Namespaces: []string{s.Namespace}})
	ready(t, s, "demo")
	var service corev1.Service
	s.Get(t, "demo", &service)
	change := func(edit func(*v1alpha1.API)) {
		t.Helper()
		pooltest.Change(t, s, "demo", &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) { edit(&p.Spec.API) })
	}
	gateway := v1alpha1.GatewayReference{Name: "public", Namespace: "gateways"}
	change(func(a *v1alpha1.API) {
		a.Gateway = &v1alpha1.Gateway{ParentRefs: []v1alpha1.GatewayReference{gateway}, Hostnames: []string{"old.example"}}
		a.Ingress = &v1alpha1.Ingress{Hosts: []string{"relay.example"}, TLS: &v1alpha1.IngressTLS{CertManager: &v1alpha1.CertManager{ClusterIssuer: "letsencrypt"}}}
	})
	s.Await(t, "demo", v1alpha1.ConditionExposed, "False/ProviderMissing")
	s.Await(t, "demo", v1alpha1.ConditionReady, "False/ProviderMissing")

	if err := server.Install(apiservertest.HTTPRouteCRDOf(t, "v1.1.0")); err != nil {
		t.Fatal(err)
	}
	for _, condition := range []string{v1alpha1.ConditionExposed, v1alpha1.ConditionReady} {
		c := s.Await(t, "demo", condition, "False/Refused")
		for _, text := range []string{"HTTPRoute demo", ".spec.rules[0].timeouts", "version 1.2 or newer", "spec.api.ingress"} {
			if !strings.Contains(c.Message, text) {
				t.Errorf("the message of %s is %q, want %q in it", condition, c.Message, text)
			}
		}
	}
	if err := server.Install(apiservertest.HTTPRouteCRD(t)); err != nil {
		t.Fatal(err)
	}
	change(func(a *v1alpha1.API) { a.Gateway.Hostnames = []string{"routed.example"} }) // tried at once
	route := pooltest.Object(build.KindHTTPRoute)
	pooltest.Eventually(t, "the HTTPRoute is there", func() error {
		return s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "demo"}, route)
	})
	s.Await(t, "demo", v1alpha1.ConditionExposed, "Unknown/Pending")
	var ingress networkingv1.Ingress
	s.Get(t, "demo", &ingress)
	ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "203.0.113.7"}}
	if err := s.Client.Status().Update(t.Context(), &ingress); err != nil {
		t.Fatal(err)
	}
	reportOnRoute(t, s, route, "False", "NotAllowedByListeners")
	if c := s.Await(t, "demo", v1alpha1.ConditionExposed, "False/NotAccepted"); !strings.Contains(c.Message, "NotAllowedByListeners") {
		t.Errorf("the message is %q, want the Gateway's reason", c.Message)
	}
	reportOnRoute(t, s, route, "True", "Accepted")
	s.Await(t, "demo", v1alpha1.ConditionExposed, "True/Exposed")
	s.Await(t, "demo", v1alpha1.ConditionReady, "True/Ready")
	if api := s.Status(t, "demo").API; api == nil || !slices.Equal(api.Hosts, []string{"relay.example", "routed.example"}) || !slices.Equal(api.Addresses, []string{"203.0.113.7"}) {
		t.Errorf("status.api is %+v, want both hosts and the address", api)
	}

	change(func(a *v1alpha1.API) { a.Ingress, a.Gateway = nil, nil })
	s.AwaitAbsent(t, "demo", v1alpha1.ConditionExposed)
	pooltest.Eventually(t, "Ingress and HTTPRoute are deleted", func() error {
		for _, object := range []client.Object{&networkingv1.Ingress{}, pooltest.Object(build.KindHTTPRoute)} {
			err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "demo"}, object)
			if client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("%T: %w", object, err)
			}
		}
		return nil
	})
	version := service.ResourceVersion
	if s.Get(t, "demo", &service); service.ResourceVersion != version {
		t.Error("the Service was written, although spec.api.service is not set")
	}
}

// reportOnRoute reports on the HTTPRoute as the controller of its Gateway does.
func reportOnRoute(t *testing.T, s *pooltest.Stand, route *unstructured.Unstructured, accepted, reason string) {
	t.Helper()
	key := client.ObjectKeyFromObject(route)
	if err := s.Client.Get(t.Context(), key, route); err != nil {
		t.Fatal(err)
	}
	condition := func(kind, status, reason string) any {
		return map[string]any{
			"type": kind, "status": status, "reason": reason, "message": "", "observedGeneration": route.GetGeneration(),
			"lastTransitionTime": "2026-01-01T00:00:00Z",
		}
	}
	parents := []any{map[string]any{
		"parentRef":      map[string]any{"group": build.KindHTTPRoute.Group, "kind": "Gateway", "name": "public", "namespace": "gateways"},
		"controllerName": "gateways.example/controller",
		"conditions":     []any{condition("Accepted", accepted, reason), condition("ResolvedRefs", "True", "ResolvedRefs")},
	}}
	if err := unstructured.SetNestedSlice(route.Object, parents, "status", "parents"); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.Status().Update(t.Context(), route); err != nil {
		t.Fatal(err)
	}
}

// A load balancer's Service exposes the fleet once the cluster's controller has reported an address,
// and keeps the clients' addresses if it is told to.
func TestALoadBalancerExposesTheFleet(t *testing.T) {
	t.Parallel()
	s, _ := stand(t, pooltest.KubeletOptions{})
	ready(t, s, "demo")
	change := func(edit func(*v1alpha1.Service)) {
		t.Helper()
		pooltest.Change(t, s, "demo", &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) { edit(p.Spec.API.Service) })
	}
	pooltest.Change(t, s, "demo", &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) {
		p.Spec.API.Service = &v1alpha1.Service{Type: v1alpha1.ServiceLoadBalancer}
	})
	s.Await(t, "demo", v1alpha1.ConditionExposed, "Unknown/Pending")
	var service corev1.Service
	s.Get(t, "demo", &service)
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.9"}}
	if err := s.Client.Status().Update(t.Context(), &service); err != nil {
		t.Fatal(err)
	}
	if c := s.Await(t, "demo", v1alpha1.ConditionExposed, "True/Exposed"); !strings.Contains(c.Message, "externalTrafficPolicy is not Local") {
		t.Errorf("the message is %q, want that clients share a limit", c.Message)
	}
	if api := s.Status(t, "demo").API; api == nil || !slices.Equal(api.Addresses, []string{"203.0.113.9"}) {
		t.Errorf("status.api is %+v, want the load balancer's address", api)
	}
	change(func(v *v1alpha1.Service) { v.ExternalTrafficPolicy = v1alpha1.TrafficPolicyLocal })
	pooltest.Eventually(t, "the load balancer keeps addresses, and the message says nothing of a limit", func() error {
		s.Get(t, "demo", &service)
		c := meta.FindStatusCondition(s.Status(t, "demo").Conditions, v1alpha1.ConditionExposed)
		if service.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal || c == nil || strings.Contains(c.Message, "limit") {
			return fmt.Errorf("policy %s, condition %+v", service.Spec.ExternalTrafficPolicy, c)
		}
		return nil
	})
	change(func(v *v1alpha1.Service) { *v = v1alpha1.Service{} })
	s.AwaitAbsent(t, "demo", v1alpha1.ConditionExposed)
}
