package pool

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// Exposure is what leads clients from outside of the cluster to the fleet.
type Exposure struct {
	// Service is the Service, if the spec has it serve clients outside of the cluster.
	Service *corev1.Service
	// Addresses are the addresses of the Ingress' load balancer; none before the controller has
	// reported them.
	Addresses []string
	// Routes are the reports of controllers on the HTTPRoute, one for each Gateway or listener.
	Routes []RouteReport
}

// RouteReport is a controller's report on an HTTPRoute.
type RouteReport struct {
	Gateway v1alpha1.GatewayReference
	// Accepted and ResolvedRefs are the conditions of the Gateway API; nil while the controller has
	// not reported on the present route.
	Accepted, ResolvedRefs *metav1.Condition
}

// observeExposure reads the Service, the Ingress and the HTTPRoute, as far as the spec asks for
// them.
func (r *Reconciler) observeExposure(ctx context.Context, f *Facts) error {
	var errs []error
	if hasPublicService(&f.Pool.Spec.API) {
		errs = append(errs, r.observeService(ctx, f))
	}
	if f.Pool.Spec.API.Ingress != nil {
		errs = append(errs, r.observeIngress(ctx, f))
	}
	if f.Pool.Spec.API.Gateway != nil && f.Capabilities.HTTPRoute {
		errs = append(errs, r.observeHTTPRoute(ctx, f))
	}
	return errors.Join(errs...)
}

func (r *Reconciler) observeService(ctx context.Context, f *Facts) error {
	var service corev1.Service
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(f.Pool), &service)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Service: %w", err)
	}
	if metav1.IsControlledBy(&service, f.Pool) {
		f.Exposure.Service = &service
	}
	return nil
}

func (r *Reconciler) observeIngress(ctx context.Context, f *Facts) error {
	var ingress networkingv1.Ingress
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(f.Pool), &ingress)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Ingress: %w", err)
	}
	if !metav1.IsControlledBy(&ingress, f.Pool) {
		return nil
	}
	for _, address := range ingress.Status.LoadBalancer.Ingress {
		for _, text := range []string{address.Hostname, address.IP} {
			if text != "" {
				f.Exposure.Addresses = append(f.Exposure.Addresses, text)
			}
		}
	}
	return nil
}

// observeHTTPRoute reads the HTTPRoute from the API server, because the cache cannot watch a kind
// that is not installed.
func (r *Reconciler) observeHTTPRoute(ctx context.Context, f *Facts) error {
	route := new(unstructured.Unstructured)
	route.SetGroupVersionKind(build.KindHTTPRoute)
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(f.Pool), route)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil // also when the CRD was removed a moment ago
	}
	if err != nil {
		return fmt.Errorf("read HTTPRoute: %w", err)
	}
	if metav1.IsControlledBy(route, f.Pool) {
		f.Exposure.Routes = routeReports(route)
	}
	return nil
}

// routeReports reads the status of an HTTPRoute. It omits what it cannot read.
func routeReports(route *unstructured.Unstructured) (reports []RouteReport) {
	items, _, _ := unstructured.NestedSlice(route.Object, "status", "parents")
	for _, item := range items {
		content, ok := item.(map[string]any)
		if !ok {
			continue
		}
		var parent struct {
			ParentRef  v1alpha1.GatewayReference `json:"parentRef"`
			Conditions []metav1.Condition        `json:"conditions"`
		}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &parent) != nil {
			continue
		}
		report := RouteReport{Gateway: parent.ParentRef}
		for i := range parent.Conditions {
			c := &parent.Conditions[i]
			if c.ObservedGeneration != 0 && c.ObservedGeneration < route.GetGeneration() {
				continue // about an earlier content of the route
			}
			switch c.Type {
			case "Accepted":
				report.Accepted = c
			case "ResolvedRefs":
				report.ResolvedRefs = c
			}
		}
		reports = append(reports, report)
	}
	return reports
}
