package keys

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// The Secret of a key was deleted, and the key was restored under another index.
func TestRestoredKeyIsShownOnce(t *testing.T) {
	t.Parallel()
	moved := key(0, 1, v1alpha1.PayerActive)
	s := inputSpec{count: 2, keys: []Key{moved}, change: func(in *Input) {
		in.Pool.Status.FeePayers = []v1alpha1.FeePayerStatus{{Address: moved.Address, SecretName: SecretName("p", 0, 0), State: v1alpha1.PayerActive}}
	}}
	want := []v1alpha1.FeePayerStatus{{Address: moved.Address, SecretName: moved.Secret, State: v1alpha1.PayerActive}}
	if diff := cmp.Diff(want, Decide(s.input()).Payers); diff != "" {
		t.Errorf("payers (-want +got):\n%s", diff)
	}
}

// Every payer in use is in the status, where people find the address to fund. A signer has no
// Secret, so no event is about its key.
func TestNamedKeysAndSignersAreActivePayers(t *testing.T) {
	t.Parallel()
	generated := key(0, 0, v1alpha1.PayerActive)
	balance := int64(7)
	in := inputSpec{count: 1, keys: []Key{generated}, change: func(in *Input) {
		in.Refs = []refs.Payer{{Secret: "mine", Key: "key", Address: "address-of-mine"}}
		in.Pool.Spec.FeePayers.Signers = []v1alpha1.Signer{{Name: "aws", Address: "address-of-aws"}}
		in.Balances["address-of-aws"] = Balance{Lamports: 7}
		in.Pool.Status.FeePayers = []v1alpha1.FeePayerStatus{
			{Address: "former", SignerName: "aws", State: v1alpha1.PayerActive}, {Address: generated.Address, SecretName: generated.Secret},
		}
	}}.input()
	plan := Decide(in)
	want := []v1alpha1.FeePayerStatus{
		{Address: "address-of-mine", SecretName: "mine", State: v1alpha1.PayerActive},
		{Address: "address-of-aws", SignerName: "aws", State: v1alpha1.PayerActive, BalanceLamports: &balance},
		{Address: generated.Address, SecretName: generated.Secret, State: v1alpha1.PayerActive},
	}
	if diff := cmp.Diff(want, plan.Payers); diff != "" {
		t.Errorf("payers (-want +got):\n%s", diff)
	}
	if len(plan.Events) > 0 {
		t.Errorf("events are %v, want none", plan.Events)
	}
}
