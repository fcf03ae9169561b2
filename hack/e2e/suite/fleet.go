package suite

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/gagliardetto/solana-go"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/stage"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/relay/contract"
)

// relayContainer is the relay's in a fleet's pods.
const relayContainer = "relay"

// fleet is a RelayPool as its user handles it.
type fleet struct {
	c    *cluster.Cluster
	name string
}

func (f *fleet) key() client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: f.name}
}

// labels select the fleet's pods, as its documentation says.
func (f *fleet) labels() map[string]string {
	return map[string]string{"app.kubernetes.io/instance": f.name, "app.kubernetes.io/component": "relay"}
}

func (f *fleet) get(ctx context.Context) (*v1alpha1.RelayPool, error) {
	pool := &v1alpha1.RelayPool{}
	if err := f.c.Client.Get(ctx, f.key(), pool); err != nil {
		return nil, fmt.Errorf("read RelayPool %s: %w", f.name, err)
	}
	return pool, nil
}

// change edits the spec, again when somebody else was faster.
func (f *fleet) change(ctx context.Context, edit func(*v1alpha1.RelayPoolSpec)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pool, err := f.get(ctx)
		if err != nil {
			return err
		}
		edit(&pool.Spec)
		return f.c.Client.Update(ctx, pool)
	})
}

// condition waits until one has a status and, unless empty, a reason, for the
// spec as it is now, and gives its message.
func (f *fleet) condition(ctx context.Context, kind string, status metav1.ConditionStatus, reason string) (message string, err error) {
	what := fmt.Sprintf("RelayPool %s is %s=%s %s", f.name, kind, status, reason)
	err = cluster.Await(ctx, strings.TrimSpace(what), cluster.Minutes(5), func(ctx context.Context) (string, error) {
		pool, err := f.get(ctx)
		if err != nil {
			return "", err
		}
		found := meta.FindStatusCondition(pool.Status.Conditions, kind)
		switch {
		case found == nil:
			return "it has no such condition", nil
		case found.ObservedGeneration != pool.Generation:
			return "the operator has not taken in the spec", nil
		case found.Status != status || reason != "" && found.Reason != reason:
			return fmt.Sprintf("it is %s %s: %s", found.Status, found.Reason, found.Message), nil
		}
		message = found.Message
		return "", nil
	})
	return message, err
}

func (f *fleet) pods(ctx context.Context) ([]corev1.Pod, error) {
	return f.c.Pods(ctx, namespace, f.labels())
}

func (f *fleet) deployment(ctx context.Context) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	if err := f.c.Client.Get(ctx, f.key(), d); err != nil {
		return nil, fmt.Errorf("read Deployment %s: %w", f.name, err)
	}
	return d, nil
}

// settled waits until every pod is of the newest template, by whatever check
// wants of each, and serves, and there are as many as the Deployment wants.
func (f *fleet) settled(ctx context.Context, what string, check func(*corev1.Pod) string) (pods []corev1.Pod, err error) {
	err = cluster.Await(ctx, "every pod of "+f.name+" "+what, cluster.Minutes(8), func(ctx context.Context) (string, error) {
		d, err := f.deployment(ctx)
		if err != nil {
			return "", err
		}
		if d.Status.ObservedGeneration != d.Generation {
			return "the Deployment's change is not taken in", nil
		}
		if pods, err = f.pods(ctx); err != nil {
			return "", err
		}
		ready := 0
		for i := range pods {
			if complaint := check(&pods[i]); complaint != "" {
				return pods[i].Name + " " + complaint, nil
			}
			if cluster.Ready(&pods[i]) {
				ready++
			}
		}
		if wanted := int(*d.Spec.Replicas); len(pods) != wanted || ready != wanted {
			return fmt.Sprintf("%d pods, %d ready, %d wanted", len(pods), ready, wanted), nil
		}
		return "", nil
	})
	return pods, err
}

// hpa reads the fleet's autoscaler.
func (f *fleet) hpa(ctx context.Context) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := f.c.Client.Get(ctx, f.key(), h); err != nil {
		return nil, fmt.Errorf("read the HorizontalPodAutoscaler %s: %w", f.name, err)
	}
	return h, nil
}

// payers are all keys of the fleet, by state; no state for all.
func (f *fleet) payers(ctx context.Context, states ...v1alpha1.FeePayerState) (keys []solana.PublicKey, secrets []string, err error) {
	pool, err := f.get(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range pool.Status.FeePayers {
		if len(states) > 0 && states[0] != p.State {
			continue
		}
		key, err := solana.PublicKeyFromBase58(p.Address)
		if err != nil {
			return nil, nil, fmt.Errorf("read the address of payer %s: %w", p.Secret, err)
		}
		keys, secrets = append(keys, key), append(secrets, p.Secret)
	}
	return keys, secrets, nil
}

// pool is the RelayPool that a user writes for the stage.
func (s *suite) pool(name string, maxReplicas, jobsPerReplica int32) *v1alpha1.RelayPool {
	minimum, target := int64(50_000_000), int64(10_000_000_000)
	everyone := int32(0)
	anywhere := func(port int32) []v1alpha1.Destination {
		return []v1alpha1.Destination{{CIDR: "0.0.0.0/0", Port: port}}
	}
	return &v1alpha1.RelayPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1alpha1.RelayPoolSpec{
			Concurrency: 8,
			Pool: v1alpha1.Pool{
				Profile: v1alpha1.Profile{Name: "development"}, RootRing: ring, CheckIntervalSeconds: 10,
				VerifyingKey: v1alpha1.ConfigMapKey{Name: stage.VerifyingKeyMap, Key: stage.VerifyingKeyName},
			},
			Solana: v1alpha1.Solana{
				Cluster:   localnet.GenesisHash.String(),
				Endpoints: []v1alpha1.Endpoint{{Name: "local", URL: s.stage.RPCURL()}},
			},
			Database: v1alpha1.Database{URLFrom: v1alpha1.SecretKey{Name: name + "-database", Key: stage.URLKey}, MaxConnections: 24},
			FeePayers: v1alpha1.FeePayers{
				Generate: &v1alpha1.GeneratedKeys{Count: 1}, MinimumBalance: &minimum, TargetBalance: &target,
				SpendCaps: v1alpha1.SpendCaps{TransfersDay: new(int64)}, // the load is all transfers

			},
			Swap:        &v1alpha1.Swap{Router: v1alpha1.Router{URL: s.stage.RouterURL(), Program: market.ProgramID.String()}},
			ViewingKeys: v1alpha1.ViewingKeys{CompliancePublicKey: compliancePublicKey},
			// All clients come from one address here.
			API:         v1alpha1.API{RequestsPerMinute: &everyone},
			Autoscaling: &v1alpha1.Autoscaling{MinReplicas: 1, MaxReplicas: maxReplicas, JobsPerReplica: jobsPerReplica},
			NetworkPolicy: &v1alpha1.NetworkPolicy{
				OperationsFrom: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": stage.ClientsApp}}}},
				Database:       anywhere(5432), RPC: anywhere(contract.LocalChainPort), Router: anywhere(contract.LocalRouterPort),
			},
			Template: v1alpha1.Template{
				// The more is logged, the more could be shown that must not be.
				LogLevel: "debug",
				Resources: &corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
				},
			},
		},
	}
}

// compliancePublicKey has a private half that nobody has.
const compliancePublicKey = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"

// operationsURL is a pod's operations port.
func operationsURL(pod *corev1.Pod) string {
	return "http://" + pod.Status.PodIP + ":" + strconv.Itoa(contract.OperationsPort)
}
