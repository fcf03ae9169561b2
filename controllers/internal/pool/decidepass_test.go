package pool

import (
	"errors"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/refs"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

func TestGate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change       func(f *Facts)
		wantWithheld bool
		wantRecorded bool
	}{
		"the chain was never read and no pod runs": {change: func(f *Facts) { f.Pool.Status.InitialisedAt = nil; f.ChainRead = false; f.Fleet = Fleet{} }, wantWithheld: true},
		"the chain was never read and pods run":    {change: func(f *Facts) { f.Pool.Status.InitialisedAt = nil; f.ChainRead = false }},
		"the chain was lost and pods run": {change: func(f *Facts) {
			f.Pool.Status.InitialisedAt = nil
			f.Chain.UnavailableSince, f.Chain.Report = now(), reportOf(poolcheck.Failed, poolcheck.ReasonAccountMissing)
		}},
		"the pool is not initialised": {change: func(f *Facts) {
			f.Pool.Status.InitialisedAt = nil
			f.Chain.Report = reportOf(poolcheck.Failed, poolcheck.ReasonAccountMissing)
		}, wantWithheld: true},
		"the pool is first found initialised and no pod runs":               {change: func(f *Facts) { f.Pool.Status.InitialisedAt = nil; setFleet(f, 0, 0) }, wantWithheld: true, wantRecorded: true},
		"the pool is first found initialised and pods run":                  {change: func(f *Facts) { f.Pool.Status.InitialisedAt = nil }, wantRecorded: true},
		"the status has the pool as initialised":                            {change: func(f *Facts) { setFleet(f, 0, 0) }},
		"the status has the pool as initialised and the account is missing": {change: func(f *Facts) { f.Chain.Report = reportOf(poolcheck.Failed, poolcheck.ReasonAccountMissing) }},
		"the gate only warns": {change: func(f *Facts) {
			f.Pool.Status.InitialisedAt, f.Pool.Spec.Pool.Gate = nil, v1alpha1.GateWarn
			f.Chain.Report = reportOf(poolcheck.Failed, poolcheck.ReasonAccountMissing)
			f.Fleet = Fleet{}
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthyFacts()
			tc.change(f)
			p := Decide(f, settings())
			if p.Withheld != tc.wantWithheld || p.RecordInitialised != tc.wantRecorded {
				t.Errorf("withheld %t, initialisation recorded %t; want %t, %t", p.Withheld, p.RecordInitialised, tc.wantWithheld, tc.wantRecorded)
			}
		})
	}
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	auto := &v1alpha1.Autoscaling{Provider: v1alpha1.ProviderHPA, MinReplicas: 3, MaxReplicas: 9}
	tests := map[string]struct {
		replicas    *int32
		auto        *v1alpha1.Autoscaling
		live        int32 // -1: no Deployment
		withheld    bool
		want        *int32
		wantDerived bool
	}{
		"the spec sets a number":                        {replicas: ptr.To[int32](4), live: 2, want: ptr.To[int32](4)},
		"the spec sets 0":                               {replicas: ptr.To[int32](0), live: 2, want: ptr.To[int32](0)},
		"the spec sets none, a new fleet":               {live: -1, want: ptr.To[int32](2)},
		"the spec sets none, a running fleet":           {live: 7, want: ptr.To[int32](7), wantDerived: true},
		"the spec sets none, after the gate has opened": {live: 0, want: ptr.To[int32](2), wantDerived: true},
		"an autoscaler on a running fleet":              {auto: auto, live: 1},
		"an autoscaler on a fleet without pods":         {auto: auto, live: 0, want: ptr.To[int32](3), wantDerived: true},
		"an autoscaler on a new fleet":                  {auto: auto, live: -1, want: ptr.To[int32](3), wantDerived: true},
		"the gate overrides spec.replicas":              {replicas: ptr.To[int32](4), live: 0, withheld: true, want: ptr.To[int32](0)},
		"the gate overrides an autoscaler":              {auto: auto, live: 0, withheld: true, want: ptr.To[int32](0)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthyFacts()
			f.Pool.Spec.Replicas, f.Pool.Spec.Autoscaling = tc.replicas, tc.auto
			setFleet(f, max(tc.live, 0), 0)
			if tc.live < 0 {
				f.Fleet = Fleet{}
			}
			got, derived := replicas(f, tc.withheld)
			if !ptr.Equal(got, tc.want) || derived != tc.wantDerived {
				t.Errorf("replicas %v, derived from the live number: %t; want %v, %t", ptr.Deref(got, -1), derived, ptr.Deref(tc.want, -1), tc.wantDerived)
			}
		})
	}
}

func TestNothingIsDeployedOnUnknownFacts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(f *Facts)
		want   bool
	}{
		"everything is known":                   {change: func(*Facts) {}, want: true},
		"a Secret is missing":                   {change: func(f *Facts) { f.References.Problems = []refs.Problem{{Reason: v1alpha1.ReasonSecretNotFound}} }},
		"the Secrets were never read":           {change: func(f *Facts) { f.References = refs.Facts{} }},
		"one of the Secrets was never read":     {change: func(f *Facts) { f.References.Unread = []refs.Unread{{Kind: refs.Secret}} }},
		"one of the Secrets cannot be read now": {change: func(f *Facts) { f.References.Unread = []refs.Unread{{Kind: refs.Secret, LastRead: now()}} }, want: true},
		"keys could not be read":                {change: func(f *Facts) { f.KeysKnown = false }},
		"there is no key":                       {change: func(f *Facts) { f.References.Payers = nil }},
		"there is a signer and no key": {change: func(f *Facts) {
			f.References.Payers = nil
			f.Pool.Spec.FeePayers = v1alpha1.FeePayers{Signers: []v1alpha1.Signer{{Name: "a", Address: signerA}}}
		}, want: true},
		"a signer has the address of a generated key": {change: func(f *Facts) {
			f.Pool.Spec.FeePayers.Generate = &v1alpha1.GeneratedKeys{Count: 1}
			f.Pool.Spec.FeePayers.Signers = []v1alpha1.Signer{{Name: "a", Address: signerA}}
			f.Keys.Keys = []keys.Key{generatedKey(v1alpha1.PayerActive)}
			f.Keys.Keys[0].Address = signerA
		}},
		"the fleet could not be read":          {change: func(f *Facts) { f.Unread[PartFleet] = errors.New("boom") }},
		"the optional kinds could not be read": {change: func(f *Facts) { f.Unread[PartCapabilities] = errors.New("boom") }},
		"the spec is invalid":                  {change: func(f *Facts) { f.Pool.Spec.Solana.Cluster = "x" }},
		"the chain was never read":             {change: func(f *Facts) { f.Chain, f.ChainRead = chainwatch.Reading{}, false }, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthyFacts()
			tc.change(f)
			p := Decide(f, settings())
			if p.Deploy != tc.want || (len(p.Objects) > 0) != tc.want {
				t.Errorf("deploy %t with %d objects: want %t", p.Deploy, len(p.Objects), tc.want)
			}
		})
	}
}

// TestRolloutIsUnknownWhenPodsCannotBeRead: if pods that could not be read counted as
// absent, the keys with which they sign would be drained and swept.
func TestRolloutIsUnknownWhenPodsCannotBeRead(t *testing.T) {
	t.Parallel()
	f := healthyFacts()
	if !keysInput(f, nil).Rollout.Known {
		t.Error("Rollout.Known is false for a fleet that was read")
	}
	f.Fleet = Fleet{}
	if r := keysInput(f, nil).Rollout; !r.Known || !r.Complete {
		t.Errorf("rollout of an absent fleet is %+v, want Known and Complete", r)
	}
	f.Unread[PartFleet] = errors.New("boom")
	if r := keysInput(f, nil).Rollout; r.Known || r.Complete {
		t.Errorf("rollout of a fleet that could not be read is %+v, want neither Known nor Complete", r)
	}
}

func TestTheChainIsCheckedForTheDeclaredPool(t *testing.T) {
	t.Parallel()
	f := healthyFacts()
	f.Pool.Spec.Pool.RootHistorySize = 64
	f.Pool.Spec.Pool.ProgramID = payerB().String()
	f.Pool.Spec.Solana.Endpoints = append(f.Pool.Spec.Solana.Endpoints,
		v1alpha1.Endpoint{Name: "sender", URL: "http://127.0.0.1:1", Roles: []v1alpha1.Role{v1alpha1.RoleSubmit}},
		v1alpha1.Endpoint{Name: "secret", URLSecretRef: &v1alpha1.SecretKeyReference{Name: "postgres", Key: "rpc"}, Roles: []v1alpha1.Role{v1alpha1.RoleRead}})
	f.Target = targetOf(f.Pool, &f.References, (&parser{}).parse, nil)
	q := Decide(f, settings()).Query
	if len(q.Endpoints) != 2 || q.Endpoints[0].Name != "main" || q.Endpoints[1].Name != "secret" {
		t.Fatalf("%d endpoints: want main and secret, which serve reads", len(q.Endpoints))
	}
	before := q.Endpoints[1].Identity
	f.References.Resolved[0].ResourceVersion = "2"
	if after := targetOf(f.Pool, &f.References, (&parser{}).parse, nil).Query.Endpoints[1].Identity; after == before {
		t.Error("the endpoint's identity is unchanged after its Secret changed")
	}
	before = q.Endpoints[0].Identity
	f.Pool.Spec.Solana.Endpoints[0].CAFrom = &v1alpha1.CertificatesSource{SecretRef: &v1alpha1.SecretKeyReference{Name: "rpc", Key: "ca.crt"}}
	if main := targetOf(f.Pool, &f.References, (&parser{}).parse, nil).Query.Endpoints[0]; main.Identity == before || main.CA == nil {
		t.Error("the endpoint's identity is unchanged with authorities, or the reader does not get them")
	}
	if q.Target.Profile.RootHistory != 64 || q.Target.Profile.ProgramID != payerB() {
		t.Errorf("root history %d, program %s: want 64 and the program in the spec", q.Target.Profile.RootHistory, q.Target.Profile.ProgramID)
	}
	if len(q.Payers) != 2 || len(q.Thresholds) != 2 {
		t.Errorf("%d payers and %d thresholds: want 2 and 2", len(q.Payers), len(q.Thresholds))
	}
}

func TestRenderEqualsTheObjectsOfAPass(t *testing.T) {
	t.Parallel()
	f := healthyFacts()
	all := build.Capabilities{PodMonitor: true, PrometheusRule: true, ScaledObject: true}
	f.Capabilities = all
	wanted := Decide(f, settings()).Objects
	got, err := Render(f.Pool, RenderOptions{Settings: settings(), Capabilities: all})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(wanted) || len(got) == 0 {
		t.Fatalf("%d objects: want %d", len(got), len(wanted))
	}
	for i := range got {
		if got[i].Kind != wanted[i].Kind || got[i].Name != wanted[i].Name {
			t.Errorf("object %d is %s %s: want %s %s", i, got[i].Kind.Kind, got[i].Name, wanted[i].Kind.Kind, wanted[i].Name)
		}
	}
	f.Pool.Spec.Solana.Cluster = "x"
	if _, err := Render(f.Pool, RenderOptions{}); err == nil {
		t.Error("an invalid spec was rendered")
	}
}
