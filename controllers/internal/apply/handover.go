package apply

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

// handOverAttempts is the maximum number of attempts of one handover. An attempt fails if another
// writer changes the Deployment meanwhile.
const handOverAttempts = 5

// replicasPath is the path of a Deployment's replicas.
func replicasPath() path { return path{"f:spec", "f:replicas"} }

// HandOver makes HandOverFieldOwner an owner of a Deployment's field replicas, without changing
// the field's value. Then FieldOwner can stop applying the field. If the field had no other
// owner, the API server would reset it to its default, 1. Apply calls HandOver when FieldOwner
// owns the replicas and the wanted Deployment omits them. The RelayPool must own the Deployment.
// HandOver fails with a conflict if other writers change the Deployment at every attempt.
func (a *Applier) HandOver(ctx context.Context, key types.NamespacedName) error {
	var err error
	for range handOverAttempts {
		var live appsv1.Deployment
		// Read from the API server: a cache might not have the newest count.
		if err := a.options.Live.Get(ctx, key, &live); err != nil {
			return fmt.Errorf("read Deployment %s: %w", key.Name, err)
		}
		replicas := int32(1)
		if live.Spec.Replicas != nil {
			replicas = *live.Spec.Replicas
		}
		config := handOverConfig(&live)
		// With the resource version, the write fails if the Deployment was scaled since it was
		// read.
		config.SetResourceVersion(live.ResourceVersion)
		config.Object["spec"] = map[string]any{"replicas": int64(replicas)}
		if err = a.applyHandOver(ctx, config); !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("hand over replicas of Deployment %s: %w", key.Name, err)
	}
	return nil
}

func handOverConfig(live metav1.Object) *unstructured.Unstructured {
	config := &unstructured.Unstructured{}
	config.SetGroupVersionKind(build.KindDeployment)
	config.SetNamespace(live.GetNamespace())
	config.SetName(live.GetName())
	config.SetUID(live.GetUID())
	return config
}

func (a *Applier) applyHandOver(ctx context.Context, config *unstructured.Unstructured) error {
	return a.options.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(config),
		client.FieldOwner(HandOverFieldOwner), client.ForceOwnership)
}

func setsReplicas(deployment map[string]any) bool {
	spec, _ := deployment["spec"].(map[string]any)
	_, sets := spec["replicas"]
	return sets
}

// handOverOmittedReplicas hands replicas over when the operator owns them and the
// wanted Deployment omits them.
func (p *pass) handOverOmittedReplicas(ctx context.Context, t target, owned fieldTree) error {
	if setsReplicas(t.desired) || !owned.has(replicasPath()) {
		return nil
	}
	if err := p.HandOver(ctx, types.NamespacedName{Namespace: p.owner.Namespace, Name: t.ref.Name}); err != nil {
		return err
	}
	p.result.HandedOver = true
	return nil
}

// releaseReplicas ends a handover once another manager owns the replicas: FieldOwner again, or an
// autoscaler that has scaled. If the handover ended earlier, the API server would remove the
// field.
func (p *pass) releaseReplicas(ctx context.Context, t target) error {
	if t.ref.Kind != build.KindDeployment {
		return nil
	}
	handedOver, hasNewOwner := false, false
	entries := t.live.managedFields()
	for i := range entries {
		e := &entries[i]
		if e.FieldsV1 == nil {
			continue
		}
		tree, err := parseFields(e.FieldsV1)
		if err != nil {
			return err
		}
		switch {
		case e.Manager == HandOverFieldOwner:
			handedOver = true
			// If another manager took the field by force, this entry no longer has it.
			hasNewOwner = hasNewOwner || !tree.has(replicasPath())
		case tree.has(replicasPath()):
			hasNewOwner = true
		}
	}
	if !handedOver || !hasNewOwner {
		return nil
	}
	config := handOverConfig(t.live.object)
	config.SetResourceVersion(t.live.version())
	if err := p.applyHandOver(ctx, config); err != nil {
		return fmt.Errorf("end the handover of replicas: %w", err)
	}
	return nil
}
