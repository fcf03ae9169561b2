package pool_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// A rotation from its beginning to its end: the Jobs are the relay itself, with
// a database and a chain, and the funds are on the new key afterwards. Pods that
// end slowly keep the old key for a while, and nothing is drained before.
func TestARotationMovesTheFundsToNewKeys(t *testing.T) {
	t.Parallel()
	relay := pooltest.BuildRelay(t)
	s := pooltest.NewStand(t, apiservertest.Config(t))
	s.UseDatabase(t, pooltest.Database(t, relay))
	pooltest.StartKubelet(t, s.Config, s.Namespace, pooltest.KubeletOptions{Job: s.Processes(t, relay).Run, Linger: 2 * time.Second})
	pooltest.StartOperator(t, s.Config, pooltest.OperatorOptions{Namespaces: []string{s.Namespace}})
	ready(t, s, "demo")
	old := s.Status(t, "demo").FeePayers[0]

	pooltest.Change(t, s, "demo", &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) {
		p.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: 1}
	})
	pooltest.Eventually(t, "the rotation is done", func() error {
		rotation := s.Status(t, "demo").Rotation
		if rotation == nil {
			return fmt.Errorf("it has not begun")
		}
		if rotation.Step != v1alpha1.RotationDone || rotation.Revision != 1 {
			return fmt.Errorf("revision %d is at %s: %s", rotation.Revision, rotation.Step, rotation.Message)
		}
		return nil
	})
	s.Await(t, "demo", v1alpha1.ConditionReady, "True/Ready")

	var retired, active corev1.Secret
	s.Get(t, "demo-payer-0-0", &retired)
	s.Get(t, "demo-payer-1-0", &active)
	if retired.Labels[keys.LabelState] != "retired" || active.Labels[keys.LabelState] != "active" {
		t.Errorf("the old key is %s and the new one %s: want retired and active", retired.Labels[keys.LabelState], active.Labels[keys.LabelState])
	}
	balance := func(address string) uint64 {
		t.Helper()
		got, err := rpc.New(s.RPC).GetBalance(t.Context(), solana.MustPublicKeyFromBase58(address), rpc.CommitmentConfirmed)
		if err != nil {
			t.Fatal(err)
		}
		return got.Value
	}
	if got := balance(old.Address); got != 0 {
		t.Errorf("the old key holds %d lamports: want 0", got)
	}
	if got := balance(active.Annotations[keys.AnnotationAddress]); got < 1_999_000_000 || got >= 2_000_000_000 {
		t.Errorf("the new key holds %d lamports: want 2 SOL less some fees", got)
	}
	var pods corev1.PodList
	if err := s.Client.List(t.Context(), &pods, client.InNamespace(s.Namespace), client.MatchingLabels{"app.kubernetes.io/component": "relay"}); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 2 {
		t.Errorf("there are %d pods: want 2", len(pods.Items))
	}
	for i := range pods.Items {
		for _, volume := range pods.Items[i].Spec.Volumes {
			if volume.Projected == nil {
				continue
			}
			for _, source := range volume.Projected.Sources {
				if source.Secret != nil && source.Secret.Name == "demo-payer-0-0" {
					t.Error("a pod still has the old key")
				}
			}
		}
	}
	s.AwaitEvent(t, "demo", v1alpha1.EventRotationStep)
}
