package keys

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/keyfile"
)

func TestARotationWaitsForRequiredCopies(t *testing.T) {
	t.Parallel()
	old, fresh := key(0, 0, v1alpha1.PayerActive), key(1, 0, v1alpha1.PayerIncoming)
	copied := fresh
	copied.BackedUp = true
	const command = "kubectl annotate secret p-payer-1-0 -n n --overwrite relaypool.dev/backed-up=address-of-p-payer-1-0"
	tests := map[string]struct {
		backup  *v1alpha1.KeyBackup
		keys    []Key
		change  func(*Input)
		want    []string
		message string
		missing int // keys that are reported as not copied
	}{
		"no copy, which is required":         {&v1alpha1.KeyBackup{Required: true}, []Key{old, fresh}, nil, []string{"mount p-payer-0-0", "step Generate of 1"}, command, 2},
		"no copy, which is only reported":    {&v1alpha1.KeyBackup{}, []Key{old, fresh}, nil, []string{"make p-payer-1-fund", "mount p-payer-0-0", "step Fund of 1"}, "", 2},
		"no copy, and none is asked for":     {nil, []Key{old, fresh}, nil, []string{"make p-payer-1-fund", "mount p-payer-0-0", "step Fund of 1"}, "", 2},
		"a copy of the new key":              {&v1alpha1.KeyBackup{Required: true}, []Key{old, copied}, nil, []string{"make p-payer-1-fund", "mount p-payer-0-0", "step Fund of 1"}, "", 1},
		"required once the key is funded":    {&v1alpha1.KeyBackup{Required: true}, []Key{old, fresh}, func(in *Input) { in.Jobs = []Job{runningJob(v1alpha1.RotationFund, 1, []Key{old}, []Key{fresh})} }, []string{"keep p-payer-1-fund", "mount p-payer-0-0", "step Fund of 1"}, "", 2},
		"required, with no old key that has": {&v1alpha1.KeyBackup{Required: true}, []Key{fresh}, nil, []string{"label p-payer-1-0 Active", "step CutOver of 1"}, "", 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := inputSpec{revision: 1, count: 1, keys: tc.keys, change: tc.change}.input()
			in.Pool.Namespace = "n"
			in.Pool.Spec.FeePayers.Generate.Backup = tc.backup
			p := Decide(in)
			got := summary(p)
			got = got[:len(got)-len(p.Problems)]
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if tc.message != "" && !strings.Contains(p.Rotation.Message, tc.message) {
				t.Errorf("the rotation waits for %q, want %q in it", p.Rotation.Message, tc.message)
			}
			if len(p.NotBackedUp) != tc.missing {
				t.Errorf("%d keys are reported without a copy, want %d", len(p.NotBackedUp), tc.missing)
			}
		})
	}
}

func TestACopyIsAcknowledgedByTheKeysAddress(t *testing.T) {
	t.Parallel()
	private, err := keyfile.Generate(bytes.NewReader(make([]byte, 64)))
	if err != nil {
		t.Fatal(err)
	}
	address := keyfile.Address(private)
	tests := map[string]struct {
		value string
		want  bool
	}{
		"the address":         {address, true},
		"no annotation":       {"", false},
		"a blind true":        {"true", false},
		"another address":     {"9wfXhaoTA134sVJB2jJjFCia6x4YY7fmbNhh4qB9K52c", false},
		"the address, padded": {address + " ", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			immutable := true
			secret := &corev1.Secret{Immutable: &immutable, Data: map[string][]byte{DataKey: keyfile.Format(private)}}
			secret.Labels = map[string]string{LabelPool: "p", LabelRevision: "0", LabelIndex: "0", LabelState: "active"}
			secret.Annotations = map[string]string{AnnotationBackedUp: tc.value}
			k, fault := keyOf("p", secret, 0, 0)
			if fault != "" || k.BackedUp != tc.want {
				t.Errorf("backed up: %t, fault %q; want %t", k.BackedUp, fault, tc.want)
			}
		})
	}
}

// The loss of a Secret is reported in the pass that notices it, once by an event and then by the
// condition, in every step of a rotation.
func TestALostKeyIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	const (
		active, incoming  = v1alpha1.PayerActive, v1alpha1.PayerIncoming
		draining, retired = v1alpha1.PayerDraining, v1alpha1.PayerRetired
	)
	tests := map[string]struct {
		revision int32
		keys     []Key
		lost     v1alpha1.FeePayerStatus
		reported bool // by an earlier pass
		want     bool
		events   int
	}{
		"a draining key, beside a new one":              {1, []Key{key(1, 0, active)}, v1alpha1.FeePayerStatus{Address: "l", SecretName: "p-payer-0-0", State: draining}, false, true, 1},
		"one of two draining keys":                      {1, []Key{key(0, 0, draining), key(1, 0, active)}, v1alpha1.FeePayerStatus{Address: "l", SecretName: "p-payer-0-1", State: draining}, false, true, 1},
		"a draining key, in a later pass":               {1, []Key{key(1, 0, active)}, v1alpha1.FeePayerStatus{Address: "l", SecretName: "p-payer-0-0", State: draining}, true, true, 0},
		"a draining key, once another rotation follows": {2, []Key{key(1, 0, active), key(2, 0, incoming)}, v1alpha1.FeePayerStatus{Address: "l", SecretName: "p-payer-0-0", State: draining}, true, false, 0},
		"an active key while new ones are funded":       {1, []Key{key(0, 0, active), key(1, 0, incoming)}, v1alpha1.FeePayerStatus{Address: "l", SecretName: "p-payer-0-1", State: active}, false, true, 1},
		"an active key that newer ones replaced":        {1, []Key{key(0, 0, retired), key(1, 0, active)}, v1alpha1.FeePayerStatus{Address: "l", SecretName: "p-payer-0-1", State: active}, true, false, 0},
		"a retired key, which is swept":                 {1, []Key{key(1, 0, active)}, v1alpha1.FeePayerStatus{Address: "l", SecretName: "p-payer-0-0", State: retired}, false, false, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := inputSpec{revision: tc.revision, count: 1, keys: tc.keys}.input()
			in.Pool.Status.FeePayers = []v1alpha1.FeePayerStatus{tc.lost}
			plan := Decide(in)
			if tc.reported {
				in.Pool.Status.FeePayers = plan.Payers
				plan = Decide(in)
			}
			reported, events := false, 0
			for _, p := range plan.Problems {
				reported = reported || p.Reason == v1alpha1.ReasonSecretNotFound && p.Name == tc.lost.SecretName
			}
			for _, e := range plan.Events {
				if e.Reason == v1alpha1.EventKeyLost {
					events++
				}
			}
			if reported != tc.want || events != tc.events {
				t.Errorf("reported %t, %d events; want %t and %d", reported, events, tc.want, tc.events)
			}
		})
	}
}

// The examples in the guide name Secrets, keys and labels that the operator makes.
func TestTheExamplesOfCopiesFitTheKeys(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../../docs/guides/key-backup.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := AnnotationBackedUp + "="; !strings.Contains(string(content), want) {
		t.Errorf("the example does not show how to acknowledge a copy, %s", want)
	}
	made := apilabels.Set{LabelPool: "shield", LabelRevision: "0", LabelIndex: "0", LabelState: "active"}
	decoder := utilyaml.NewYAMLToJSONDecoder(bytes.NewReader(content))
	var kinds []string
	for {
		var o struct {
			Kind string
			Spec struct {
				Selector struct{ Secret struct{ Name string } }
				Data     []struct {
					Match struct{ SecretKey string }
				}
				DeletionPolicy    string
				IncludedResources []string
				LabelSelector     *metav1.LabelSelector
			}
		}
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, o.Kind)
		switch o.Kind {
		case "PushSecret":
			if o.Spec.Selector.Secret.Name != SecretName("shield", 0, 0) || len(o.Spec.Data) != 1 || o.Spec.Data[0].Match.SecretKey != DataKey || o.Spec.DeletionPolicy != "None" {
				t.Errorf("the PushSecret is %+v, want one of a generated key's value that leaves the copy", o.Spec)
			}
		case "Backup":
			selector, err := metav1.LabelSelectorAsSelector(o.Spec.LabelSelector)
			if err != nil || !selector.Matches(made) || selector.Matches(apilabels.Set{LabelPool: "shield"}) || !cmp.Equal(o.Spec.IncludedResources, []string{"secrets"}) {
				t.Errorf("the Backup is %+v, error %v; want one of generated keys' Secrets alone", o.Spec, err)
			}
		}
	}
	if diff := cmp.Diff([]string{"PushSecret", "Backup"}, kinds); diff != "" {
		t.Errorf("examples (-want +got):\n%s", diff)
	}
}
