package pool

import (
	"context"
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

func (r *Reconciler) observeAutoscaler(ctx context.Context, f *Facts) error {
	a := f.Pool.Spec.Autoscaling
	switch {
	case a == nil:
		return nil
	case a.Provider == v1alpha1.ProviderKEDA:
		if !f.Capabilities.ScaledObject {
			return nil
		}
		return r.observeScaledObject(ctx, f)
	default:
		var hpa autoscalingv2.HorizontalPodAutoscaler
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(f.Pool), &hpa)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read HorizontalPodAutoscaler: %w", err)
		}
		if metav1.IsControlledBy(&hpa, f.Pool) {
			f.Autoscaler = autoscalerOf(hpa.Status.Conditions)
		}
		return nil
	}
}

func autoscalerOf(conditions []autoscalingv2.HorizontalPodAutoscalerCondition) Autoscaler {
	a := Autoscaler{Present: true}
	for _, c := range conditions {
		works := c.Status == corev1.ConditionTrue
		switch {
		case c.Type == autoscalingv2.ScalingActive && c.Reason == "ScalingDisabled":
			// The fleet has 0 pods, so the condition says nothing about the metric.
		case c.Type == autoscalingv2.ScalingActive:
			a.Working, a.Message = &works, c.Message
		case c.Type == autoscalingv2.AbleToScale && !works:
			a.Working, a.Stuck, a.Message = &works, true, c.Message
			return a
		}
	}
	return a
}

// observeScaledObject reads KEDA's ScaledObject from the API server. It does not use the
// cache, because the cache cannot watch a kind that is not installed.
func (r *Reconciler) observeScaledObject(ctx context.Context, f *Facts) error {
	object := new(unstructured.Unstructured)
	object.SetGroupVersionKind(build.KindScaledObject)
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(f.Pool), object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil // also when KEDA was removed a moment ago
	}
	if err != nil {
		return fmt.Errorf("read ScaledObject: %w", err)
	}
	if metav1.IsControlledBy(object, f.Pool) {
		f.Autoscaler = scaledObjectOf(object)
	}
	return nil
}

func scaledObjectOf(object *unstructured.Unstructured) Autoscaler {
	a := Autoscaler{Present: true}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		c, ok := item.(map[string]any)
		if !ok {
			continue
		}
		kind, _ := c["type"].(string)
		status, _ := c["status"].(string)
		message, _ := c["message"].(string)
		isTrue := status == string(metav1.ConditionTrue)
		switch {
		case kind == "Ready" && status != string(metav1.ConditionUnknown):
			a.Working, a.Message = &isTrue, strings.TrimSpace(message)
		case kind == "Fallback" && isTrue:
			// KEDA cannot read the metric, and uses its fallback.
			a.Working, a.Message = new(false), strings.TrimSpace(message)
			return a
		}
	}
	return a
}
