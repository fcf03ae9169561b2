package pool

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/refs"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// now is the present time of all tests of pure functions.
func now() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// The fleet of the fixtures has these payers.
func payerA() solana.PublicKey { return solana.PublicKey{1} }
func payerB() solana.PublicKey { return solana.PublicKey{2} }

// healthyFacts returns the facts of a healthy fleet of two pods. Its status has only
// InitialisedAt.
func healthyFacts() *Facts {
	pool := &v1alpha1.RelayPool{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "pools", UID: "demo-uid", Generation: 3, CreationTimestamp: metav1.NewTime(now().Add(-time.Hour))},
		Spec: v1alpha1.RelayPoolSpec{
			Replicas: ptr.To[int32](2),
			Pool: v1alpha1.Pool{
				Profile: v1alpha1.Profile{Name: "development"}, VerifyingKeyConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "circuit", Key: "vk"},
				Gate: v1alpha1.GateHold, CheckIntervalSeconds: 60,
			},
			Solana: v1alpha1.Solana{
				Cluster:   shieldpool.DevelopmentGenesisHash.String(),
				Endpoints: []v1alpha1.Endpoint{{Name: "main", URL: "http://127.0.0.1:8899"}},
			},
			Database:    v1alpha1.Database{URLSecretRef: v1alpha1.SecretKeyReference{Name: "postgres", Key: "url"}},
			FeePayers:   v1alpha1.FeePayers{SecretRefs: []v1alpha1.SecretKeyReference{{Name: "payers", Key: "a"}, {Name: "payers", Key: "b"}}},
			ViewingKeys: v1alpha1.ViewingKeys{CompliancePublicKey: "00"},
		},
		Status: v1alpha1.RelayPoolStatus{InitialisedAt: &metav1.Time{Time: now().Add(-time.Minute)}},
	}
	f := &Facts{
		Now: now(), Pool: pool, KeysKnown: true, ChainRead: true, Unread: map[Part]error{},
		References: refs.Facts{
			ReadAt: now(), Next: now().Add(time.Minute),
			Resolved: []refs.Object{{Kind: refs.Secret, Name: "postgres", UID: "p", ResourceVersion: "1"}},
			Payers: []refs.Payer{
				{Secret: "payers", Key: "a", Address: payerA().String()}, {Secret: "payers", Key: "b", Address: payerB().String()},
			},
		},
		Keys: keys.Facts{ReadAt: now(), Next: now().Add(time.Minute)},
		Chain: chainwatch.Reading{
			At: now(), Report: reportOf(poolcheck.OK, ""),
			Payers: map[solana.PublicKey]chainwatch.Payer{
				payerA(): {Lamports: 1_000_000_000, At: now()}, payerB(): {Lamports: 2_000_000_000, At: now()},
			},
		},
		Backlog: Backlog{At: now(), Due: 3},
	}
	f.Target = targetOf(pool, &f.References, (&parser{}).parse, nil)
	setFleet(f, 2, 2)
	return f
}

// reportOf returns the report of a check with one finding.
func reportOf(state poolcheck.State, reason poolcheck.Reason) poolcheck.Report {
	index := uint64(1_234_567)
	return poolcheck.Report{
		Checks: []poolcheck.Check{{Name: poolcheck.CheckPool, State: state, Reason: reason, Subject: "POOL", Expected: "an account", Found: "none", Remedy: "initialise it"}},
		Pools:  []poolcheck.PoolFacts{{NextIndex: &index}},
	}
}

// setFleet sets a Deployment with that many replicas and pods. The parameter ready is how
// many of the pods are ready.
func setFleet(f *Facts, replicas, ready int32) {
	f.Fleet.Deployment = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Generation: 1, ResourceVersion: "7"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: ready, AvailableReplicas: ready,
		},
	}
	f.Fleet.Pods = nil
	for i := range replicas {
		status := corev1.ConditionFalse
		if i < ready {
			status = corev1.ConditionTrue
		}
		f.Fleet.Pods = append(f.Fleet.Pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "demo-7d9c5b8f6d-x2" + string('a'+i) + "z4", UID: "11111111-2222-3333-4444-555555555555", Labels: build.Labels("demo")},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
		})
	}
}

// setRelayState sets the state of the relay's container in every pod.
func setRelayState(f *Facts, state, last corev1.ContainerState) {
	for i := range f.Fleet.Pods {
		f.Fleet.Pods[i].Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: build.RelayContainer, Image: "relay:1", State: state, LastTerminationState: last,
		}}
	}
}

func settings() Settings { return Settings{Image: "relay:default"} }

// statusOf returns the status that a pass reports for the facts when its writes change
// nothing.
func statusOf(t *testing.T, f *Facts) v1alpha1.RelayPoolStatus {
	t.Helper()
	p := Decide(f, settings())
	return Report(f, &p, &Outcome{Applied: p.Deploy && !p.Paused})
}
