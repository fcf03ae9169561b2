package pool

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// observe reads everything that Decide needs. A part that cannot be read is unknown, and
// its error is in Facts.Unread. observe itself fails only when ctx has ended.
func (r *Reconciler) observe(ctx context.Context, pool *v1alpha1.RelayPool) (*Facts, error) {
	key := client.ObjectKeyFromObject(pool)
	f := &Facts{Now: r.Now(), Pool: pool, Unread: map[Part]error{}}
	recordUnread := func(p Part, err error) {
		if err != nil {
			f.Unread[p] = err
		}
	}
	var err error
	f.References, err = r.References.Resolve(ctx, pool)
	recordUnread(PartReferences, err)
	r.logUnread(ctx, f)
	f.Keys, err = r.KeyObserver.Observe(ctx, pool)
	recordUnread(PartKeys, err)
	f.Capabilities, err = r.Capabilities.ForBuild(ctx)
	recordUnread(PartCapabilities, err)
	recordUnread(PartFleet, r.observeFleet(ctx, f))
	recordUnread(PartAutoscaler, r.observeAutoscaler(ctx, f))
	recordUnread(PartExposure, r.observeExposure(ctx, f))
	f.KeysKnown = !f.isUnread(PartKeys) && !f.isUnread(PartFleet)
	f.Target = targetOf(pool, &f.References, r.keyParser.parse, r.References)
	f.Chain, f.ChainRead = r.Watcher.Reading(key)
	// The watcher gets this spec's query only after Decide, so the watcher's last reading may
	// be about the pool of an earlier spec, or of an earlier RelayPool with the same name. Such
	// a reading must not open the gate for this RelayPool.
	f.Chain = f.Chain.ForTarget(f.Target.Query.Target)
	f.ChainRead = f.ChainRead && (!f.Chain.At.IsZero() || !f.Chain.UnavailableSince.IsZero())
	f.Backlog = r.Backlogs.Backlog(key, readyIPs(f.Fleet.Pods))
	f.Backlog.Old = f.Now.Sub(f.Backlog.At) > maxBacklogAge
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	return f, nil
}

// err joins the errors of the parts that could not be read.
func (f *Facts) err() error {
	var all []error
	for _, p := range []Part{PartReferences, PartKeys, PartFleet, PartAutoscaler, PartExposure, PartCapabilities} {
		all = append(all, f.Unread[p])
	}
	return errors.Join(all...)
}

// logUnread logs why references could not be read in this pass. The status says only that
// they could not be read.
func (r *Reconciler) logUnread(ctx context.Context, f *Facts) {
	if f.References.ReadAt.Before(f.Now) {
		return // an earlier pass tried to read them, and logged the errors
	}
	for _, u := range f.References.Unread {
		log.FromContext(ctx).Error(u.Err, "Could not read a Secret or ConfigMap of the RelayPool", "kind", string(u.Kind), "object", u.Name)
	}
}
