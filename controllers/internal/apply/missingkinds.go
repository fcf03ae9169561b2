package apply

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

func (p *pass) markMissing(ref Ref) {
	delete(p.state.objects, ref)
	delete(p.state.emptyKinds, ref.Kind)
	if !slices.Contains(p.result.MissingKinds, ref.Kind) {
		p.result.MissingKinds = append(p.result.MissingKinds, ref.Kind)
	}
}

// recordMissingKind handles a kind whose CRD is gone: if err says so, it lists the kind as
// missing and returns nil. It returns any other error unchanged.
func (p *pass) recordMissingKind(ref Ref, err error) error {
	if isOptionalKind(ref.Kind) && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err)) {
		p.options.Capabilities.Invalidate()
		p.markMissing(ref)
		p.result.retryWithin(goneInterval)
		return nil
	}
	return err
}
