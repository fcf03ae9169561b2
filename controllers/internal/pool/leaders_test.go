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

// Two operators run as processes. The leader is killed four times, each time after the API
// server has executed a write and before the leader gets the answer. Each time another
// operator takes over. Only the leader writes, and no key is made twice.
func TestTheOtherOperatorTakesOverFromAKilledLeader(t *testing.T) {
	t.Parallel()
	program := pooltest.BuildOperator(t)
	s := pooltest.NewStand(t, apiservertest.Config(t))
	pooltest.StartKubelet(t, s.Config, s.Namespace, pooltest.KubeletOptions{})
	if err := s.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	operators := newOperatorPair(t, s, program)
	operators.start()
	defer operators.stop()

	// Two leaders are killed while the first keys and the fleet are made.
	operators.killLeaderAt(t, "a key was made", created(http.MethodPost, "secrets"), func() {
		s.Create(t, s.Pool("demo", func(p *v1alpha1.RelayPool) { p.Spec.FeePayers.Generate.Count = 2 }))
	})
	first := keySecrets(t, s)
	if len(first) != 1 {
		t.Errorf("there are %d keys after the leader that made the first one was killed: want 1", len(first))
	}
	operators.killLeaderAt(t, "the Deployment was made", created(http.MethodPatch, "deployments"), func() {})
	pooltest.Eventually(t, "both keys are known", func() error {
		if known := len(s.Status(t, "demo").FeePayers); known != 2 {
			return fmt.Errorf("the status shows %d", known)
		}
		return nil
	})
	s.Fund(t, "demo", 2_000_000_000)
	s.Await(t, "demo", v1alpha1.ConditionReady, "True/Ready")
	made := keySecrets(t, s)
	checkKeysKept(t, first, made, 2)

	// Two leaders are killed while the keys and the first Job of a rotation are made.
	operators.killLeaderAt(t, "a key of the rotation was made", created(http.MethodPost, "secrets"), func() {
		pooltest.Change(t, s, "demo", &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) { p.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: 1} })
	})
	half := keySecrets(t, s)
	operators.killLeaderAt(t, "the rotation's Job was made", created(http.MethodPost, "jobs"), func() {})
	pooltest.Eventually(t, "the next leader continues the rotation", func() error {
		if operators.leader() == operators.lastKilled {
			return errors.New("no operator leads")
		}
		if r := s.Status(t, "demo").Rotation; r == nil || r.Step != v1alpha1.RotationFund || r.Revision != 1 {
			return fmt.Errorf("the rotation is %+v", r)
		}
		return nil
	})
	checkKeysKept(t, made, half, 3)
	checkKeysKept(t, half, keySecrets(t, s), 4)
	var jobs batchv1.JobList
	if err := s.Client.List(t.Context(), &jobs, client.InNamespace(s.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(jobs.Items) != 1 || jobs.Items[0].Name != keys.JobName("demo", 1, v1alpha1.RotationFund) {
		t.Errorf("there are %d Jobs: want the one that funds", len(jobs.Items))
	}
	operators.checkLeaders(t)
}

// created returns a predicate of requests: whether the API server has created an object of
// the resource.
func created(method, resource string) func(pooltest.Request) bool {
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
		t.Errorf("%d Secrets have %d different keys, want a key for each Secret", len(list.Items), len(out))
	}
	return out
}

// checkKeysKept checks that no key of before is missing, and that there are want keys.
func checkKeysKept(t *testing.T, before, after map[string]types.UID, want int) {
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

// operatorPair keeps two operators running. When one ends, another is started, as a
// Deployment would do.
type operatorPair struct {
	t       *testing.T
	stand   *pooltest.Stand
	program string
	stopped chan struct{}
	runners sync.WaitGroup
	// lastKilled is the number of the last operator that killLeaderAt killed.
	lastKilled int

	mutex   sync.Mutex
	started int // how many operators were started; they are numbered from 1
	holder  int // the owner of the Lease
	leaders map[int]bool
	faults  []string
	// killAt selects the request at which the leader is killed. killed receives its number.
	killAt func(pooltest.Request) bool
	killed chan int
}

func newOperatorPair(t *testing.T, s *pooltest.Stand, program string) *operatorPair {
	t.Helper()
	return &operatorPair{t: t, stand: s, program: program, stopped: make(chan struct{}), leaders: map[int]bool{}}
}

func (s *operatorPair) start() {
	for range 2 {
		s.runners.Go(func() {
			for s.runOperator() {
			}
		})
	}
}

func (s *operatorPair) stop() {
	close(s.stopped)
	s.runners.Wait()
}

// runOperator runs one operator to its end, and reports whether to start another.
func (s *operatorPair) runOperator() bool {
	s.mutex.Lock()
	s.started++
	number := s.started
	s.mutex.Unlock()
	var running atomic.Pointer[process.Process]
	traffic := &pooltest.Traffic{OnAnswer: func(r pooltest.Request) { s.answered(number, r, &running) }}
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

// answered records which operator leads, and the writes of other operators. If killAt
// selects the request, answered kills the leader before the leader gets the answer.
func (s *operatorPair) answered(number int, r pooltest.Request, p *atomic.Pointer[process.Process]) {
	if !r.Writes() {
		return
	}
	s.mutex.Lock()
	switch {
	case r.Resource == "leases":
		if r.Status < http.StatusMultipleChoices {
			s.holder, s.leaders[number] = number, true
		}
	case number != s.holder:
		s.faults = append(s.faults, fmt.Sprintf("operator %d: %s, although operator %d is the leader", number, r, s.holder))
	}
	killed := s.killed
	kill := s.killAt != nil && number == s.holder && s.killAt(r)
	if kill {
		s.killAt = nil
	}
	s.mutex.Unlock()
	if !kill {
		return
	}
	if err := p.Load().Kill(); err != nil {
		s.t.Error(err)
	}
	killed <- number
}

// killLeaderAt calls cause, and waits until the leader is killed at its next request for which
// selects returns true.
func (s *operatorPair) killLeaderAt(t *testing.T, what string, selects func(pooltest.Request) bool, cause func()) {
	t.Helper()
	killed := make(chan int, 1)
	s.mutex.Lock()
	s.killAt, s.killed = selects, killed
	s.mutex.Unlock()
	cause()
	pooltest.Eventually(t, "the leader is killed when "+what, func() error {
		select {
		case s.lastKilled = <-killed:
			return nil
		default:
			return errors.New("it still runs")
		}
	})
}

func (s *operatorPair) leader() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.holder
}

// checkLeaders checks that only leaders wrote, and that every killed leader had a
// successor.
func (s *operatorPair) checkLeaders(t *testing.T) {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, fault := range s.faults {
		t.Error(fault)
	}
	if len(s.leaders) < 5 {
		t.Errorf("%d operators became leader: want at least 5, as four were killed", len(s.leaders))
	}
	t.Logf("%d of %d operators became leader", len(s.leaders), s.started)
}
