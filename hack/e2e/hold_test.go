package e2e

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

const (
	// firstFunds are the funds of the fleet's payer: enough for tens of thousands of
	// transactions.
	firstFunds = 200 * solana.LAMPORTS_PER_SOL
	// maxReplicas is the size to which a backlog grows the fleet, by one pod for each
	// submissionsPerReplica waiting submissions.
	maxReplicas, submissionsPerReplica = 3, 24
)

// hold follows the documentation's second command: the RelayPool's conditions name the
// missing objects until they exist.
func (s *suite) hold(t *testing.T) {
	ok(t, s.makeNamespace(namespace, "restricted"))
	began := time.Now()
	s.setUp(t)
	settingUp := time.Since(began)
	s.log(t, "Postgres, chain and clients' pod serve")
	s.makeDatabase(t, fleetName)
	s.fleet = s.newFleet(fleetName)
	ok(t, s.kube.Create(s.ctx, s.relayPool(fleetName, maxReplicas, submissionsPerReplica)))
	s.log(t, "PoolInitialised=False AccountMissing: %s", s.fleet.awaitCondition(t, v1alpha1.ConditionPoolInitialised, metav1.ConditionFalse, v1alpha1.ReasonAccountMissing))
	s.fleet.awaitCondition(t, v1alpha1.ConditionReady, metav1.ConditionFalse, "")
	ok(t, checkNever(s.ctx, "a pod starts before the pool exists", 6*time.Second, func(ctx context.Context) (string, error) {
		pods, err := s.fleet.pods(ctx)
		if len(pods) > 0 {
			return fmt.Sprintf("there are %d", len(pods)), nil
		}
		return "", err
	}))
	s.fleet.fund(t, firstFunds)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	ok(t, err)
	authority := solana.PrivateKey(private)
	s.airdrop(t, authority.PublicKey(), authorityLamports)
	sent := time.Now()
	s.initialise(t, authority)
	s.log(t, "the pool's Initialize transaction is sent")
	s.fleet.awaitCondition(t, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	pods := s.fleet.awaitPods(t, "serves", nil)
	s.log(t, "the RelayPool is Ready, with %d pod", len(pods))
	s.figure("Initialize sent to Ready", "%.1f s", time.Since(sent).Seconds())
	s.figure("helm install to Ready, without the set-up of Postgres and chain", "%.1f s", (time.Since(s.installed) - settingUp).Seconds())
	s.fleet.awaitCondition(t, v1alpha1.ConditionAutoscalingActive, metav1.ConditionTrue, v1alpha1.ReasonScaling)
	s.log(t, "AutoscalingActive is True: the autoscaler reads the backlog")
	s.airdrop(t, s.stage.Pool.Address, poolLamports)
}

// fund sends lamports to the address in the condition, and waits until the condition is true.
func (f *fleet) fund(t *testing.T, lamports uint64) {
	t.Helper()
	message := f.awaitCondition(t, v1alpha1.ConditionFeePayersFunded, metav1.ConditionFalse, v1alpha1.ReasonUnderfunded)
	keys, _ := f.payers(t, v1alpha1.PayerActive)
	for _, key := range keys {
		if !strings.Contains(message, key.String()) {
			t.Fatalf("the condition FeePayersFunded does not name the address %s: %s", key, message)
		}
		f.airdrop(t, key, lamports)
	}
	f.log(t, "funded %d payer as the condition says", len(keys))
	f.awaitCondition(t, v1alpha1.ConditionFeePayersFunded, metav1.ConditionTrue, "")
}
