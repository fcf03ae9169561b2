package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

// mayCreate reports whether the object that ref names may be created. If ref is an autoscaler and
// the RelayPool still has an autoscaler of the other kind, mayCreate returns false and requeues
// ref until that autoscaler is deleted.
func (p *pass) mayCreate(ctx context.Context, ref Ref) (bool, error) {
	alternativeKind, ok := alternativeScaler(ref.Kind)
	if !ok {
		return true, nil
	}
	if isOptionalKind(alternativeKind) {
		if has, err := p.options.Capabilities.Has(ctx, alternativeKind); err != nil || !has {
			return err == nil, err
		}
	}
	alternative, err := p.find(ctx, Ref{alternativeKind, ref.Name})
	if err != nil {
		return false, err
	}
	if alternative != nil && alternative.ownership(p.owner) != ownedByOther {
		p.requeue(ref)
		return false, nil
	}
	return true, nil
}

// alternativeScaler returns the other kind of autoscaler, and false if kind is not an autoscaler.
// The existing autoscaler must be deleted before one of the other kind is created, because two
// autoscalers of one Deployment would conflict.
func alternativeScaler(kind schema.GroupVersionKind) (schema.GroupVersionKind, bool) {
	switch kind {
	case build.KindHorizontalPodAutoscaler:
		return build.KindScaledObject, true
	case build.KindScaledObject:
		return build.KindHorizontalPodAutoscaler, true
	default:
		return schema.GroupVersionKind{}, false
	}
}
