// This file is not built here. make.sh copies it to an earlier commit, whose operator then
// makes the fleets that TestUpgradeFromEarlierCommits upgrades.

package pool_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// endpoint is the address of the chain in the RelayPools. TestUpgradeFromEarlierCommits
// sends the calls to its own chain instead.
const endpoint = "127.86.0.1:18899"

// TestSnapshot writes etcd's data to the file that UPGRADE_SNAPSHOT names.
func TestSnapshot(t *testing.T) {
	server := apiservertest.Start(t, apiserver.Options{Controllers: pooltest.Controllers()})
	config, err := server.Config()
	if err != nil {
		t.Fatal(err)
	}
	s := pooltest.NewStand(t, config)
	if _, err := s.Chain.Listen(endpoint); err != nil {
		t.Fatal(err)
	}
	if err := s.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	pooltest.StartKubelet(t, s.Config, s.Namespace, pooltest.KubeletOptions{})
	operator := pooltest.StartOperator(t, s.Config, pooltest.OperatorOptions{Namespaces: []string{s.Namespace}})
	everywhere := []v1alpha1.Destination{{CIDR: "0.0.0.0/0", Port: 443}}
	for _, p := range []*v1alpha1.RelayPool{
		s.Pool("fixed", func(p *v1alpha1.RelayPool) {
			p.Spec.Replicas = ptr.To[int32](3)
			p.Spec.FeePayers.Generate.Count = 2
			p.Spec.NetworkPolicy = &v1alpha1.NetworkPolicy{Database: everywhere, RPC: everywhere}
			p.Spec.Template.Labels = map[string]string{"team": "pools"}
		}),
		s.Pool("scaled", func(p *v1alpha1.RelayPool) {
			p.Spec.Autoscaling = &v1alpha1.Autoscaling{Provider: v1alpha1.ProviderHPA, MinReplicas: 2, MaxReplicas: 9}
		}),
	} {
		p.Spec.Solana.Endpoints[0].URL = "http://" + endpoint
		s.Create(t, p)
		want := map[string]int{"fixed": 2, "scaled": 1}[p.Name]
		pooltest.Eventually(t, "all keys of "+p.Name+" are known", func() error {
			if known := len(s.Status(t, p.Name).FeePayers); known != want {
				return fmt.Errorf("the status shows %d", known)
			}
			return nil
		})
		s.Fund(t, p.Name, 2_000_000_000)
		s.Await(t, p.Name, v1alpha1.ConditionAvailable, "True/Available")
		s.Await(t, p.Name, v1alpha1.ConditionFeePayersFunded, "True/Funded")
		pooltest.Eventually(t, p.Name+" is stable", func() error {
			status := s.Status(t, p.Name)
			if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReconciling); c != nil {
				return errors.New(c.Message)
			}
			if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAvailable); time.Since(c.LastTransitionTime.Time) < 5*time.Second {
				return errors.New("Available changed less than 5 seconds ago")
			}
			return nil
		})
	}
	operator.Stop(t)
	if err := s.Client.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "snapshot"},
		Data:       map[string]string{"namespace": s.Namespace},
	}); err != nil {
		t.Fatal(err)
	}
	// After the API server is stopped, nothing is written, so etcd's files can be copied.
	// The API server waits for its watches longer than envtest waits for the API server, so
	// a timeout is expected.
	if err := server.Plane.APIServer.Stop(); err != nil && !strings.Contains(err.Error(), "timeout waiting") {
		t.Fatal(err)
	}
	out, err := exec.Command("tar", "-C", filepath.Join(server.Dir(), "etcd-data"), "--exclude=*.tmp", "-czf", os.Getenv("UPGRADE_SNAPSHOT"), ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
