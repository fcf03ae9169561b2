package pool

import (
	"slices"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// If the last reading shows funds on a retired key, but is older than the key's sweep, the
// funds may have been swept. Such a reading raises no alarm.
func TestAlarmOfARetiredKeyNeedsAReadingAfterItsSweep(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		read time.Time
		want bool
	}{
		"a reading from before its sweep": {read: now().Add(-time.Second)},
		"a reading from after its sweep":  {read: now().Add(10 * time.Second), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthyFacts()
			f.Pool.Spec.FeePayers = v1alpha1.FeePayers{Generate: &v1alpha1.GeneratedKeys{Count: 1}, Rotation: &v1alpha1.Rotation{Revision: 1}}
			f.Pool.Status.Rotation = &v1alpha1.RotationStatus{Revision: 1, Step: v1alpha1.RotationDone, Since: &metav1.Time{Time: now()}}
			f.References.Payers = nil
			key := func(revision int32, address solana.PublicKey, state v1alpha1.FeePayerState) keys.Key {
				return keys.Key{
					Secret: keys.SecretName("demo", revision, 0), Revision: revision, Address: address.String(), State: state,
					UID: "uid", ResourceVersion: "1", Created: now(),
				}
			}
			f.Keys.Keys = []keys.Key{key(0, payerA(), v1alpha1.PayerRetired), key(1, payerB(), v1alpha1.PayerActive)}
			f.Chain.Payers[payerA()] = chainwatch.Payer{Lamports: 1_000_000_000, At: tc.read}
			p := Decide(f, settings())
			got := slices.ContainsFunc(p.Keys.Problems, func(p refs.Problem) bool { return p.Reason == v1alpha1.ReasonRetiredKeyFunded })
			if got != tc.want {
				t.Errorf("the retired key raises an alarm: %t, want %t", got, tc.want)
			}
		})
	}
}
