package keys

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// The spec names Secrets instead of generating keys, and a person asks for a sweep. The
// test checks which generated keys are swept.
func TestSweepOfGeneratedKeysThatAreNoLongerUsed(t *testing.T) {
	t.Parallel()
	first, second := key(0, 0, v1alpha1.PayerActive), key(0, 1, v1alpha1.PayerActive)
	named := func(in *Input) {
		in.Pool.Spec.FeePayers.SecretRefs = []v1alpha1.SecretKeyReference{{Name: "mine", Key: "a"}}
		in.Pool.Annotations = map[string]string{AnnotationSweepRetired: "1"}
		in.Refs = []refs.Payer{{Secret: "mine", Key: "a", Address: "address-of-mine"}}
		in.Balances[first.Address] = Balance{Lamports: 1_000_000_000}
		in.Balances[second.Address] = Balance{Lamports: 2_000_000_000}
	}
	for name, test := range map[string]struct {
		change func(*Input)
		want   []string
		from   []Mount
	}{
		"all are swept to the key in use": {
			func(*Input) {},
			[]string{"make p-payer-0-sweep", "mount mine", "problem RetiredKeyFunded"}, mounts([]Key{first, second}),
		},
		"a key that a named Secret also contains is in use, and is not swept": {
			func(in *Input) {
				in.Refs = append(in.Refs, refs.Payer{Secret: "copy", Key: "a", Address: first.Address})
			},
			[]string{"make p-payer-0-sweep", "mount mine", "mount copy", "problem RetiredKeyFunded"}, mounts([]Key{second}),
		},
		"keys whose Secrets are named are in use, and are not swept": {
			func(in *Input) {
				in.Refs = append(in.Refs, refs.Payer{Secret: first.Secret, Key: DataKey, Address: first.Address},
					refs.Payer{Secret: second.Secret, Key: DataKey, Address: second.Address})
			},
			[]string{"mount mine", "mount p-payer-0-0", "mount p-payer-0-1"}, nil,
		},
		"no key is swept while a pod has one of them": {
			func(in *Input) { in.Rollout.Pods = []string{second.Secret} },
			[]string{"mount mine", "problem RetiredKeyFunded"}, nil,
		},
		"no key is swept during a rollout, which may start a pod with one of them": {
			func(in *Input) { in.Rollout.Complete = false },
			[]string{"mount mine", "problem RetiredKeyFunded"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := inputSpec{keys: []Key{first, second}, change: func(in *Input) { named(in); test.change(in) }}
			p := Decide(s.input())
			if diff := cmp.Diff(test.want, summary(p)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			var from []Mount
			if p.Job != nil {
				from = p.Job.From
			}
			if diff := cmp.Diff(test.from, from); diff != "" {
				t.Errorf("swept keys (-want +got):\n%s", diff)
			}
		})
	}
}

// Named keys may be about to be removed from the spec, and a signer may have another key.
func TestWhereSweptFundsGo(t *testing.T) {
	t.Parallel()
	old := key(0, 0, v1alpha1.PayerRetired)
	signers := []v1alpha1.Signer{{Name: "vault", Address: "address-of-vault"}}
	mine := []refs.Payer{{Secret: "a-mine", Key: "a", Address: "address-of-mine"}}
	for name, test := range map[string]struct {
		inputSpec
		to      []Mount
		message string // in what is reported
	}{
		"generated keys come before named ones": {
			inputSpec{revision: 1, count: 1, keys: []Key{old, key(1, 0, v1alpha1.PayerActive)}, change: func(in *Input) {
				in.Refs, in.Pool.Spec.FeePayers.Signers = mine, signers
			}}, []Mount{{"p-payer-1-0", DataKey}}, AnnotationSweepRetired,
		},
		"named keys come before signers": {
			inputSpec{keys: []Key{old}, change: func(in *Input) { in.Refs, in.Pool.Spec.FeePayers.Signers = mine, signers }},
			[]Mount{{"a-mine", "a"}}, AnnotationSweepRetired,
		},
		"a generated key without the copy that is required": {
			inputSpec{revision: 1, count: 1, keys: []Key{old, key(1, 0, v1alpha1.PayerActive)}, change: func(in *Input) {
				in.Pool.Spec.FeePayers.Generate.Backup = &v1alpha1.KeyBackup{Required: true}
			}}, nil, "first copy Secret p-payer-1-0 to a safe place",
		},
		"a fleet with signers alone, whose keys nobody has seen": {
			inputSpec{keys: []Key{old}, change: func(in *Input) { in.Pool.Spec.FeePayers.Signers = signers }}, nil, "relay sweep all",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := test.input()
			in.Pool.Annotations = map[string]string{AnnotationSweepRetired: "1"}
			in.Balances[old.Address] = Balance{Lamports: 1_000_000_000}
			p := Decide(in)
			var to []Mount
			if p.Job != nil {
				to = p.Job.To
			}
			if diff := cmp.Diff(test.to, to); diff != "" {
				t.Errorf("the plan is %q; keys (-want +got):\n%s", summary(p), diff)
			}
			if i := slices.IndexFunc(p.Problems, func(p refs.Problem) bool { return p.Reason == v1alpha1.ReasonRetiredKeyFunded }); i < 0 || !strings.Contains(p.Problems[i].Message, test.message) {
				t.Errorf("the problems are %v, want %s with %q", p.Problems, v1alpha1.ReasonRetiredKeyFunded, test.message)
			}
		})
	}
}
