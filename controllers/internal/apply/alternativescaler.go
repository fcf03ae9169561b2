package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

// mayCreate reports whether the object that ref names may be created: the RelayPool has
// no autoscaler of the other kind, or ref is not an autoscaler. If the other autoscaler still
// exists, ref waits for its deletion.
func (p *pass) mayCreate(ctx context.Context, ref Ref) (bool, error) {
	kind, ok := alternativeScaler(ref.Kind)
	if !ok {
		return true, nil
	}
	if optional(kind) {
		if has, err := p.options.Capabilities.Has(ctx, kind); err != nil || !has {
			return err == nil, err
		}
	}
	other, err := p.find(ctx, Ref{kind, ref.Name})
	if err != nil {
		return false, err
	}
	if other != nil && other.ownership(p.owner) != ownedByOther {
		p.requeue(ref)
		return false, nil
	}
	return true, nil
}

// alternativeScaler returns the other kind of autoscaler; false if kind is not an autoscaler. The
// existing autoscaler must be deleted before one of the other kind is created, because two
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
