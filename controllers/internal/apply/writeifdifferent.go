package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

// target is one object that may be written, because it does not exist or the RelayPool owns it.
type target struct {
	ref     Ref
	desired map[string]any
	digest  digest
	entry   *entry
	live    *liveObject // nil when the object does not exist
}

// writeIfDifferent writes the object if it differs from the wanted one.
func (p *pass) writeIfDifferent(ctx context.Context, t target) error {
	if t.live == nil {
		// If the wanted content has not changed, another writer deleted the object.
		return p.change(ctx, t, t.entry.wantedUnchanged(t.digest))
	}
	if t.ref.Kind == build.KindJob {
		// A Job is created once: its pod template is immutable.
		return nil
	}
	if t.entry.unchanged(t.digest, t.live.uid(), t.live.version()) {
		return nil
	}
	canon, err := p.canonical(t.ref, t.desired)
	if err != nil {
		return err
	}
	owned, hasApplied, err := ownedFields(t.live.managedFields(), FieldOwner, t.desired["apiVersion"].(string))
	if err != nil {
		return err
	}
	changes := differences(canon, t.live.content, owned)
	if hasApplied && len(changes) == 0 {
		if err := p.releaseReplicas(ctx, t); err != nil {
			return err
		}
		t.entry.remember(t.digest, t.live.uid(), t.live.version())
		return nil
	}
	// The difference is drift if the wanted content is the same as in an earlier pass. After a
	// start of the operator no earlier pass is known. Then the difference is drift if another
	// manager owns a field that differs.
	drifted := t.entry.wantedUnchanged(t.digest) || t.entry.uid == "" && ownedByOthers(t.live.managedFields(), changes)
	if t.ref.Kind == build.KindDeployment && hasApplied {
		if err := p.handOverOmittedReplicas(ctx, t, owned); err != nil {
			return err
		}
	}
	return p.change(ctx, t, drifted)
}

// change applies the object, unless the API server refused the same content recently, or the
// object was repaired too often. drifted says that another writer made the difference, so that
// the write is a repair.
func (p *pass) change(ctx context.Context, t target, drifted bool) error {
	now := p.options.Now()
	if p.recentlyRefused(t, now) {
		return nil
	}
	if drifted && p.contested(t, now) {
		return nil
	}
	out := &unstructured.Unstructured{Object: copyOf(t.desired)}
	versionBefore := ""
	if t.live != nil {
		// The write contains the uid that was read, so it fails if the object was recreated
		// since.
		out.SetUID(t.live.uid())
		versionBefore = t.live.version()
		if t.ref.Kind == build.KindDeployment && p.deploymentVersion != "" && setsReplicas(t.desired) {
			out.SetResourceVersion(p.deploymentVersion)
		}
	}
	err := p.options.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), client.FieldOwner(FieldOwner), client.ForceOwnership)
	if err != nil {
		return p.recordRefusal(t, err)
	}
	t.entry.remember(t.digest, out.GetUID(), out.GetResourceVersion())
	delete(p.state.emptyKinds, t.ref.Kind)
	switch {
	case out.GetResourceVersion() == versionBefore: // the write changed nothing
	case drifted:
		p.result.Repaired = append(p.result.Repaired, t.ref)
	default:
		p.result.Applied = append(p.result.Applied, t.ref)
	}
	return nil
}

// recentlyCompared reports whether an object of an optional kind was compared with the same wanted
// content less than OptionalInterval ago. Such an object is not cached, so each comparison costs
// an API call.
func (p *pass) recentlyCompared(ref Ref, e *entry, sum digest) bool {
	return isOptionalKind(ref.Kind) && e.wantedUnchanged(sum) &&
		p.options.Now().Sub(e.checkedAt) < p.options.OptionalInterval
}
