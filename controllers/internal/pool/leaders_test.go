package pool_test

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/controllers/internal/settings"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/hack/process"
)

// Two operators run as processes. The leader is killed several times, each time between a
// write that the API server has executed and its answer. Each time another operator takes
// over. Only the leader writes, and there is one set of keys.
func TestTheOtherOperatorTakesOverFromAKilledLeader(t *testing.T) {
	t.Parallel()
	program := pooltest.BuildOperator(t)
	s := pooltest.NewStand(t, apiservertest.Config(t))
	pooltest.StartKubelet(t, s.Config, s.Namespace, pooltest.KubeletOptions{})
	if err := s.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	two := newSuccession(t, s, program)
	two.start()
	defer two.stop()

	// Two deaths while the first keys and the fleet are made.
	two.dieAt(t, "a key was made", wrote(http.MethodPost, "secrets"), func() {
		s.Create(t, s.Pool("demo", func(p *v1alpha1.RelayPool) { p.Spec.FeePayers.Generate.Count = 2 }))
	})
	first := keySecrets(t, s)
	if len(first) != 1 {
		t.Errorf("there are %d keys when the leader dies that made the first: want 1", len(first))
	}
	two.dieAt(t, "the Deployment was made", wrote(http.MethodPatch, "deployments"), func() {})
	pooltest.Eventually(t, "both keys are known", func() error {
		if known := len(s.Status(t, "demo").FeePayers); known != 2 {
			return fmt.Errorf("there are %d", known)
		}
		return nil
	})
	s.Fund(t, "demo", 2_000_000_000)
	s.Await(t, "demo", v1alpha1.ConditionReady, "True/Ready")
	made := keySecrets(t, s)
	keptAll(t, first, made, 2)

	// Two deaths while the keys and the first Job of a rotation are made.
	two.dieAt(t, "a key of the rotation was made", wrote(http.MethodPost, "secrets"), func() {
		pooltest.Change(t, s, "demo", &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) { p.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: 1} })
	})
	half := keySecrets(t, s)
	two.dieAt(t, "the rotation's Job was made", wrote(http.MethodPost, "jobs"), func() {})
	pooltest.Eventually(t, "the next leader continues the rotation", func() error {
		if two.leader() == two.died { // no operator has become leader since
			return errors.New("no operator leads")
		}
		if r := s.Status(t, "demo").Rotation; r == nil || r.Step != v1alpha1.RotationFund || r.Revision != 1 {
			return fmt.Errorf("the rotation is %+v", r)
		}
		return nil
	})
	keptAll(t, made, half, 3)
	keptAll(t, half, keySecrets(t, s), 4)
	var jobs batchv1.JobList
	if err := s.Client.List(t.Context(), &jobs, client.InNamespace(s.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(jobs.Items) != 1 || jobs.Items[0].Name != keys.JobName("demo", 1, v1alpha1.RotationFund) {
		t.Errorf("there are %d Jobs: want the one that funds", len(jobs.Items))
	}
	two.judge(t)
}

// wrote returns a test for requests with which the API server has created an object of the
// resource.
func wrote(method, resource string) func(pooltest.Request) bool {
	return func(r pooltest.Request) bool {
		return r.Method == method && r.Resource == resource && r.Status == http.StatusCreated
	}
}

// keySecrets returns the uids of the generated keys' Secrets, by address.
func keySecrets(t *testing.T, s *pooltest.Stand) map[string]types.UID {
	t.Helper()
	var list corev1.SecretList
	if err := s.Client.List(t.Context(), &list, client.InNamespace(s.Namespace), client.HasLabels{keys.LabelState}); err != nil {
		t.Fatal(err)
	}
	out := map[string]types.UID{}
	for i := range list.Items {
		out[list.Items[i].Annotations[keys.AnnotationAddress]] = list.Items[i].UID
	}
	if len(out) != len(list.Items) {
		t.Errorf("%d Secrets have %d keys", len(list.Items), len(out))
	}
	return out
}

func keptAll(t *testing.T, before, after map[string]types.UID, want int) {
	t.Helper()
	for address, uid := range before {
		if after[address] != uid {
			t.Errorf("the key of %s is missing", address)
		}
	}
	if len(after) != want {
		t.Errorf("there are %d keys: want %d", len(after), want)
	}
}

// succession runs two operators at any time. When one ends it starts another, as a
// Deployment would.
type succession struct {
	t       *testing.T
	stand   *pooltest.Stand
	program string
	stopped chan struct{}
	keepers sync.WaitGroup
	died    int // the last operator that dieAt killed

	mutex  sync.Mutex
	lives  int
	holder int // the owner of the Lease
	led    map[int]bool
	faults []string
	dies   func(pooltest.Request) bool
	dead   chan int
}

func newSuccession(t *testing.T, s *pooltest.Stand, program string) *succession {
	t.Helper()
	return &succession{t: t, stand: s, program: program, stopped: make(chan struct{}), led: map[int]bool{}}
}

func (s *succession) start() {
	for range 2 {
		s.keepers.Go(func() {
			for s.live() {
			}
		})
	}
}

func (s *succession) stop() {
	close(s.stopped)
	s.keepers.Wait()
}

// live runs one operator to its end, and reports whether another has to follow.
func (s *succession) live() bool {
	s.mutex.Lock()
	s.lives++
	life := s.lives
	s.mutex.Unlock()
	var running atomic.Pointer[process.Process]
	traffic := &pooltest.Traffic{Answered: func(r pooltest.Request) { s.answered(life, r, &running) }}
	folder := s.t.TempDir()
	access := filepath.Join(folder, "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: traffic.Proxy(s.t, s.stand.Config).Host}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c"}},
		CurrentContext: "x",
	}, access)
	if err != nil {
		s.t.Error(err)
		return false
	}
	p, err := process.Start("operator", filepath.Join(folder, "log"), s.program, "run",
		"--kubeconfig="+access, "--relay-image="+pooltest.Image, "--namespaces="+s.stand.Namespace, "--operator-namespace="+s.stand.Namespace,
		"--lease-duration=4s", "--lease-renew-deadline=3s", "--lease-retry-period=300ms",
		"--metrics-listen="+settings.None, "--health-listen="+settings.None, "--refs-interval=1s")
	if err != nil {
		s.t.Error(err)
		return false
	}
	running.Store(p)
	select {
	case <-p.Exited():
		return true
	case <-s.stopped:
	}
	if err := p.Kill(); err != nil {
		s.t.Error(err)
	}
	return false
}

// answered records who leads, and who writes without leading. If the test wants the leader
// to die at this request, answered kills it before it gets the answer.
func (s *succession) answered(life int, r pooltest.Request, p *atomic.Pointer[process.Process]) {
	if !r.Writes() {
		return
	}
	s.mutex.Lock()
	switch {
	case r.Resource == "leases":
		if r.Status < http.StatusMultipleChoices {
			s.holder, s.led[life] = life, true
		}
	case life != s.holder:
		s.faults = append(s.faults, fmt.Sprintf("operator %d: %s, while %d led", life, r, s.holder))
	}
	dead := s.dead
	dies := s.dies != nil && life == s.holder && s.dies(r)
	if dies {
		s.dies = nil
	}
	s.mutex.Unlock()
	if !dies {
		return
	}
	if err := p.Load().Kill(); err != nil {
		s.t.Error(err)
	}
	dead <- life
}

// dieAt calls cause, and waits until the leader is killed at its next request for which at
// is true.
func (s *succession) dieAt(t *testing.T, what string, at func(pooltest.Request) bool, cause func()) {
	t.Helper()
	dead := make(chan int, 1)
	s.mutex.Lock()
	s.dies, s.dead = at, dead
	s.mutex.Unlock()
	cause()
	pooltest.Eventually(t, "the leader dies as "+what, func() error {
		select {
		case s.died = <-dead:
			return nil
		default:
			return errors.New("it lives")
		}
	})
}

func (s *succession) leader() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.holder
}

// judge checks that only leaders wrote, and that every death had a successor.
func (s *succession) judge(t *testing.T) {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, fault := range s.faults {
		t.Error(fault)
	}
	if len(s.led) < 5 {
		t.Errorf("%d operators led: want one after each of four that were killed", len(s.led))
	}
	t.Logf("%d of %d operators led", len(s.led), s.lives)
}
