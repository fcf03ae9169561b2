package keys

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/api/v1alpha1"
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
