package pool

import (
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// keysInput collects the input of keys.Decide.
func keysInput(f *Facts, problems []refs.Problem) keys.Input {
	in := keys.Input{
		Pool: f.Pool, Keys: f.Keys, Refs: f.References.Payers, Jobs: f.Jobs,
		Rollout: keys.RolloutOf(f.Fleet.Deployment, f.Fleet.Pods), Balances: map[string]keys.Balance{}, Now: f.Now,
	}
	if f.isUnread(PartFleet) {
		in.Rollout = keys.Rollout{}
	}
	switch {
	case f.Pool.Spec.Paused:
		in.Blocked = "spec.paused is true"
	case !f.References.Known():
		in.Blocked = "the Secrets and ConfigMaps that the spec names could not be read yet"
	case len(problems) > 0:
		in.Blocked = "a Secret or ConfigMap that the spec names is not usable: the condition SecretsResolved names it"
	}
	for address, payer := range f.Chain.Payers {
		balance := keys.Balance{Lamports: payer.Lamports, At: payer.At}
		if runway, ok := payer.Runway(); ok {
			balance.RunwayHours = ptr.To(int64(runway.Hours()))
		}
		in.Balances[address.String()] = balance
	}
	return in
}

func mounts(all []keys.Mount) []build.PayerMount {
	out := make([]build.PayerMount, 0, len(all))
	for _, m := range all {
		out = append(out, build.PayerMount{Secret: m.Secret, Key: m.Key})
	}
	return out
}
