package pooltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/hack/localnet"
)

// eventuallyTimeout is how long a test waits for an expected state.
const eventuallyTimeout = 5 * time.Minute

// Stand is a test environment: a namespace on a real API server, and a local chain.
type Stand struct {
	Config    *rest.Config
	Client    client.WithWatch
	Namespace string
	Chain     *localnet.Chain
	// RPC is the chain's URL.
	RPC string
}

// NewStand makes a namespace with the objects that RelayPools name: the ConfigMap
// circuit and the Secret postgres. The chain's pool is not initialised.
func NewStand(t testing.TB, config *rest.Config) *Stand {
	t.Helper()
	s := &Stand{}
	key := verifyingKey(t)
	s.startChain(t, key)
	s.createNamespace(t, config, key)
	return s
}

// SecondNamespace makes another namespace on the same API server and chain.
func (s *Stand) SecondNamespace(t testing.TB) *Stand {
	t.Helper()
	other := &Stand{Chain: s.Chain, RPC: s.RPC}
	other.createNamespace(t, s.Config, verifyingKey(t))
	return other
}

func verifyingKey(t testing.TB) []byte {
	t.Helper()
	root, err := apiserver.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(root, "hack", "circuit", "verification_key.json"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// createNamespace makes the namespace and its objects.
func (s *Stand) createNamespace(t testing.TB, config *rest.Config, key []byte) {
	t.Helper()
	s.Config, s.Namespace = config, apiservertest.NamespaceOn(t, config)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1
	var err error
	if s.Client, err = client.NewWithWatch(unlimited, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	s.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "circuit"}, Data: map[string]string{"verification_key.json": string(key)}})
	s.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "postgres"}, StringData: map[string]string{"url": "postgres://127.0.0.1:5432/relay"}})
}

// UseDatabase makes RelayPools use the database at a URL.
func (s *Stand) UseDatabase(t testing.TB, url string) {
	t.Helper()
	Change(t, s, "postgres", &corev1.Secret{}, func(secret *corev1.Secret) { secret.Data["url"] = []byte(url) })
}

func (s *Stand) startChain(t testing.TB, key []byte) {
	t.Helper()
	chain, err := localnet.New(localnet.Options{VerifyingKey: key, SlotDuration: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if s.RPC, err = chain.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	chain.Start(ctx)
	t.Cleanup(func() {
		stop()
		if err := chain.Close(); err != nil {
			t.Errorf("close the chain: %v", err)
		}
	})
	s.Chain = chain
}

// Pool returns a RelayPool with one generated key. It does not create the RelayPool.
func (s *Stand) Pool(name string, change ...func(*v1alpha1.RelayPool)) *v1alpha1.RelayPool {
	pool := &v1alpha1.RelayPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec: v1alpha1.RelayPoolSpec{
			Pool: v1alpha1.Pool{
				Profile:                  v1alpha1.Profile{Name: "development"},
				VerifyingKeyConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "circuit", Key: "verification_key.json"}, CheckIntervalSeconds: 10,
			},
			Solana: v1alpha1.Solana{
				Cluster: localnet.GenesisHash.String(), Endpoints: []v1alpha1.Endpoint{{Name: "local", URL: s.RPC}},
			},
			Database:    v1alpha1.Database{URLSecretRef: v1alpha1.SecretKeyReference{Name: "postgres", Key: "url"}},
			FeePayers:   v1alpha1.FeePayers{Generate: &v1alpha1.GeneratedKeys{Count: 1}},
			ViewingKeys: v1alpha1.ViewingKeys{CompliancePublicKey: "1111111111111111111111111111111111111111111111111111111111111111"},
		},
	}
	for _, c := range change {
		c(pool)
	}
	return pool
}

// Create makes an object in the namespace.
func (s *Stand) Create(t testing.TB, object client.Object) {
	t.Helper()
	object.SetNamespace(s.Namespace)
	if err := s.Client.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// Get reads an object of the namespace. It repeats a read that fails for the moment.
func (s *Stand) Get(t testing.TB, name string, object client.Object) {
	t.Helper()
	Eventually(t, fmt.Sprintf("read %T %s", object, name), func() error {
		err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, object)
		if apierrors.IsNotFound(err) || isMistake(err) {
			t.Fatalf("read %T %s: %v", object, name, err)
		}
		return err
	})
}

// Change changes an object, and retries after a conflict with another writer.
func Change[T client.Object](t testing.TB, s *Stand, name string, object T, change func(T)) {
	t.Helper()
	Eventually(t, fmt.Sprintf("change %T %s", object, name), func() error {
		if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, object); err != nil {
			return err
		}
		change(object)
		return s.Client.Update(t.Context(), object)
	})
}

// Status returns the status of a RelayPool.
func (s *Stand) Status(t testing.TB, name string) v1alpha1.RelayPoolStatus {
	t.Helper()
	var pool v1alpha1.RelayPool
	s.Get(t, name, &pool)
	return pool.Status
}

// Await waits until a condition has the wanted status and reason, written as True/Ready.
func (s *Stand) Await(t testing.TB, name, condition, want string) metav1.Condition {
	t.Helper()
	var got *metav1.Condition
	Eventually(t, fmt.Sprintf("%s of %s is %s", condition, name, want), func() error {
		var pool v1alpha1.RelayPool
		if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, &pool); err != nil {
			return err
		}
		got = meta.FindStatusCondition(pool.Status.Conditions, condition)
		if got == nil {
			return errors.New("it is not set")
		}
		if got.ObservedGeneration != pool.Generation {
			return fmt.Errorf("it is of generation %d, not %d", got.ObservedGeneration, pool.Generation)
		}
		if state := string(got.Status) + "/" + got.Reason; state != want {
			return fmt.Errorf("it is %s: %s", state, got.Message)
		}
		return nil
	})
	return *got
}

// AwaitAbsent waits until a condition of a RelayPool is absent.
func (s *Stand) AwaitAbsent(t testing.TB, name, condition string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%s of %s is absent", condition, name), func() error {
		var pool v1alpha1.RelayPool
		if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, &pool); err != nil {
			return err
		}
		if got := meta.FindStatusCondition(pool.Status.Conditions, condition); got != nil {
			return fmt.Errorf("it is %s/%s: %s", got.Status, got.Reason, got.Message)
		}
		return nil
	})
}

// Fund sends lamports to every payer in a RelayPool's status, once the status has a payer.
func (s *Stand) Fund(t testing.TB, name string, lamports uint64) {
	t.Helper()
	var payers []v1alpha1.FeePayerStatus
	Eventually(t, name+" has fee payers", func() error {
		if payers = s.Status(t, name).FeePayers; len(payers) == 0 {
			return errors.New("none")
		}
		return nil
	})
	for _, p := range payers {
		if err := s.Chain.Fund(solana.MustPublicKeyFromBase58(p.Address), lamports); err != nil {
			t.Fatal(err)
		}
	}
}

// AwaitEvent waits for an event on a RelayPool and returns its note.
func (s *Stand) AwaitEvent(t testing.TB, name, reason string) string {
	t.Helper()
	note := ""
	Eventually(t, "event "+reason+" on "+name, func() error {
		var list eventsv1.EventList
		if err := s.Client.List(t.Context(), &list, client.InNamespace(s.Namespace)); err != nil {
			return err
		}
		var seen []string
		for i := range list.Items {
			if e := &list.Items[i]; e.Regarding.Name == name && e.Regarding.Kind == v1alpha1.Kind {
				if e.Reason == reason {
					note = e.Note
					return nil
				}
				seen = append(seen, e.Reason)
			}
		}
		return fmt.Errorf("the events are %v", seen)
	})
	return note
}

// Eventually waits until check returns no error. After eventuallyTimeout it fails with the last
// error.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(eventuallyTimeout)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: still not after %s: %v", what, eventuallyTimeout, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: the test ended first: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
