package pool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// A fleet is exposed while the Gateway API is missing, after its CRD is installed, and after its
// controller has accepted the route. An ingress controller answers as well. Then both are removed.
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
		a.Gateway = &v1alpha1.Gateway{ParentRefs: []v1alpha1.GatewayReference{gateway}, Hostnames: []string{"routed.example"}}
		a.Ingress = &v1alpha1.Ingress{Hosts: []string{"relay.example"}, TLS: &v1alpha1.IngressTLS{CertManager: &v1alpha1.CertManager{ClusterIssuer: "letsencrypt"}}}
	})
	s.Await(t, "demo", v1alpha1.ConditionExposed, "False/ProviderMissing")
	s.Await(t, "demo", v1alpha1.ConditionReady, "False/ProviderMissing")

	if err := server.Install(apiservertest.HTTPRouteCRD(t)); err != nil {
		t.Fatal(err)
	}
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
