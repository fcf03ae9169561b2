package e2e

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/relay/contract"
)

// relayPool is the RelayPool that a user writes for the stage.
func (s *suite) relayPool(name string, maxReplicas, submissionsPerReplica int32) *v1alpha1.RelayPool {
	minimum, target := int64(50_000_000), int64(10_000_000_000)
	noLimit := int32(0)
	anywhere := func(port int32) []v1alpha1.Destination {
		return []v1alpha1.Destination{{CIDR: "0.0.0.0/0", Port: port}}
	}
	return &v1alpha1.RelayPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1alpha1.RelayPoolSpec{
			Concurrency: 4,
			Pool: v1alpha1.Pool{
				Profile: v1alpha1.Profile{Name: "development"}, RootHistorySize: rootHistory, CheckIntervalSeconds: 10,
				VerifyingKeyConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: verifyingKeyMap, Key: verifyingKeyName},
			},
			Solana: v1alpha1.Solana{
				Cluster:   localnet.GenesisHash.String(),
				Endpoints: []v1alpha1.Endpoint{{Name: "local", URL: s.stage.rpcURL()}},
			},
			Database: v1alpha1.Database{URLSecretRef: v1alpha1.SecretKeyReference{Name: name + "-database", Key: urlKey}, MaxConnections: 24},
			FeePayers: v1alpha1.FeePayers{
				Generate: &v1alpha1.GeneratedKeys{Count: 1}, MinimumBalanceLamports: &minimum, TargetBalanceLamports: &target,
				SpendCaps: v1alpha1.SpendCaps{TransfersDayLamports: new(int64)}, // the load is all transfers

			},
			Swap:        &v1alpha1.Swap{Router: v1alpha1.Router{URL: s.stage.routerURL(), ProgramID: market.ProgramID.String()}},
			ViewingKeys: v1alpha1.ViewingKeys{CompliancePublicKey: compliancePublicKey},
			// All clients have one address here.
			API:         v1alpha1.API{RequestsPerMinute: &noLimit},
			Autoscaling: &v1alpha1.Autoscaling{MinReplicas: 1, MaxReplicas: maxReplicas, SubmissionsPerReplica: submissionsPerReplica},
			NetworkPolicy: &v1alpha1.NetworkPolicy{
				OperationsFrom: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": clientsApp}}}},
				Database:       anywhere(5432), RPC: anywhere(contract.LocalChainPort), Router: anywhere(contract.LocalRouterPort),
			},
			Template: v1alpha1.Template{
				// Debug logs contain the most, so a leak of request content shows in them.
				LogLevel: v1alpha1.LogDebug,
				Resources: &corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
				},
			},
		},
	}
}

// compliancePublicKey is a key whose private key nobody has.
const compliancePublicKey = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"
