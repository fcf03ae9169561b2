package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// answers is a BacklogReader of fixed answers by address.
type answers map[string]func(ctx context.Context) (Backlog, error)

func (a answers) Backlog(ctx context.Context, ip string) (Backlog, error) { return a[ip](ctx) }

func TestPollerPollsConcurrentlyWithPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		due, asked := int64(3), map[string]int{}
		poller, err := NewPoller(answers{
			"10.0.0.1": func(ctx context.Context) (Backlog, error) {
				asked["10.0.0.1"]++
				<-ctx.Done()
				return Backlog{}, ctx.Err()
			},
			"10.0.0.2": func(context.Context) (Backlog, error) { asked["10.0.0.2"]++; return Backlog{Due: due}, nil },
		}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- poller.Start(ctx) }()
		events := 0
		go func() {
			for range poller.Events() {
				events++
			}
		}()
		key, ips := types.NamespacedName{Namespace: "n", Name: "p"}, []string{"10.0.0.1", "10.0.0.2"}
		for range 10 { // minutes in which a pass is made each second
			for range 60 {
				poller.Backlog(key, ips)
				time.Sleep(time.Second)
			}
		}
		synctest.Wait()
		got := poller.Backlog(key, ips)
		if got.Due != 3 || got.At.IsZero() || events != 1 {
			t.Errorf("backlog %+v, %d events: want 3 due, and one event", got, events)
		}
		if n := asked["10.0.0.2"]; n > 20 || n < 15 || asked["10.0.0.1"] != n {
			t.Errorf("requests to each pod in ten minutes: %v; want one every half a minute, as the second pod is asked when the first does not answer", asked)
		}
		due = 6
		time.Sleep(backlogInterval + 2*backlogTimeout)
		poller.Backlog(key, []string{"10.0.0.2"})
		synctest.Wait()
		if got := poller.Backlog(key, ips); got.Due != 6 || events != 2 {
			t.Errorf("backlog %d, %d events: want 6, and a second event because the backlog doubled", got.Due, events)
		}
		poller.Forget(key)
		if got := poller.Backlog(key, nil); !got.At.IsZero() {
			t.Error("a forgotten fleet has a backlog")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(poller.events)
	})
}

func TestUnreachablePodsArePolledLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		poller, err := NewPoller(answers{"10.0.0.1": func(context.Context) (Backlog, error) { asked++; return Backlog{}, errors.New("no route") }}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = poller.Start(ctx) }()
		for range 24 * 60 {
			if got := poller.Backlog(types.NamespacedName{Name: "p"}, []string{"10.0.0.1"}); !got.At.IsZero() {
				t.Fatal("the backlog is known, although no pod has answered")
			}
			time.Sleep(time.Minute)
		}
		if asked > 24*6+6 || asked < 24*5 {
			t.Errorf("asked %d times in a day: want about every ten minutes", asked)
		}
	})
}

// fleets is a cache of RelayPools and pods.
type fleets struct {
	client.Reader
	mutex sync.Mutex
	pools []v1alpha1.RelayPool
	pods  []corev1.Pod
	err   error
}

// change calls update, which changes the cache while a Poller reads it.
func (f *fleets) change(update func()) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	update()
}

func (f *fleets) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch l := list.(type) {
	case *v1alpha1.RelayPoolList:
		l.Items = slices.Clone(f.pools)
	case *corev1.PodList:
		l.Items = slices.Clone(f.pods)
	default:
		return fmt.Errorf("unexpected list of %T", list)
	}
	return f.err
}

func scaledPool(name string, a *v1alpha1.Autoscaling) v1alpha1.RelayPool {
	return v1alpha1.RelayPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, Spec: v1alpha1.RelayPoolSpec{Autoscaling: a}}
}

func podAt(pool, ip string, component string) corev1.Pod {
	labels := build.Labels(pool)
	labels[build.LabelComponent] = component
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: pool + "-" + ip, Labels: labels},
		Status:     corev1.PodStatus{PodIP: ip, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

// withPoller runs check with a Poller that watches f, in a synctest bubble.
func withPoller(t *testing.T, reader BacklogReader, f *fleets, check func(p *Poller)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p, err := NewPoller(reader, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		p.Watch(f)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Start(ctx) }()
		check(p) // no receiver of events, as in a process that does not lead
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAutoscaledFleetsArePolledWithoutAPass(t *testing.T) {
	t.Parallel()
	var mutex sync.Mutex
	asked := map[string]int{}
	answer := func(ip string) func(context.Context) (Backlog, error) {
		return func(context.Context) (Backlog, error) {
			mutex.Lock()
			defer mutex.Unlock()
			asked[ip]++
			return Backlog{Due: int64(asked[ip])}, nil
		}
	}
	f := &fleets{
		pools: []v1alpha1.RelayPool{
			scaledPool("fixed", nil), scaledPool("keda", &v1alpha1.Autoscaling{Provider: v1alpha1.ProviderKEDA}),
			scaledPool("hpa", &v1alpha1.Autoscaling{Provider: v1alpha1.ProviderHPA}),
		},
		pods: []corev1.Pod{
			podAt("fixed", "10.0.0.1", build.ComponentRelay), podAt("keda", "10.0.0.2", build.ComponentRelay),
			podAt("hpa", "10.0.0.3", build.ComponentRelay), podAt("hpa", "10.0.0.4", build.ComponentRotation),
		},
	}
	reader := answers{"10.0.0.1": answer("10.0.0.1"), "10.0.0.2": answer("10.0.0.2"), "10.0.0.3": answer("10.0.0.3"), "10.0.0.4": answer("10.0.0.4")}
	withPoller(t, reader, f, func(p *Poller) {
		synctest.Wait()
		if !p.AllRead() {
			t.Error("AllRead is false after every watched fleet was polled")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		mutex.Lock()
		diff := cmp.Diff(map[string]int{"10.0.0.3": 7}, asked)
		mutex.Unlock()
		if diff != "" {
			t.Errorf("requests in a minute (-want +got):\n%s", diff)
		}
		got, ok := p.Reading(types.NamespacedName{Namespace: "n", Name: "hpa"})
		if !ok || got.Due != 7 || got.Ready != 1 || got.Err != nil || time.Since(got.At) > watchedInterval {
			t.Errorf("reading %+v, %t: want 7, read a moment ago", got, ok)
		}
		if n := len(p.Watched()); n != 1 {
			t.Errorf("%d fleets are watched: want 1", n)
		}
		f.change(func() { f.pools = f.pools[:2] })
		time.Sleep(listInterval)
		synctest.Wait()
		if _, ok := p.Reading(types.NamespacedName{Namespace: "n", Name: "hpa"}); ok {
			t.Error("a deleted RelayPool has a reading")
		}
	})
}

func TestUnreachableWatchedFleetIsPolledEveryMinute(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var dead atomic.Bool
	dead.Store(true)
	key := types.NamespacedName{Namespace: "n", Name: "hpa"}
	f := &fleets{pools: []v1alpha1.RelayPool{scaledPool("hpa", &v1alpha1.Autoscaling{})}}
	reader := answers{}
	for _, ip := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"} {
		f.pods = append(f.pods, podAt("hpa", ip, build.ComponentRelay))
		reader[ip] = func(context.Context) (Backlog, error) {
			if asked.Add(1); dead.Load() {
				return Backlog{}, errors.New("no route")
			}
			return Backlog{Due: 1}, nil
		}
	}
	withPoller(t, reader, f, func(p *Poller) {
		synctest.Wait()
		if n := asked.Load(); n != podsPerReading {
			t.Errorf("%d pods were asked at first: want %d", n, podsPerReading)
		}
		got, ok := p.Reading(key)
		if !ok || !got.At.IsZero() || got.Err == nil || got.Ready != 4 {
			t.Errorf("reading %+v: want no backlog, and an error", got)
		}
		time.Sleep(time.Hour)
		if polls := asked.Load() / podsPerReading; polls > 65 || polls < 55 {
			t.Errorf("%d polls in an hour: want about one a minute", polls)
		}
		dead.Store(false)
		time.Sleep(maxWatchedPause + listInterval)
		synctest.Wait()
		if got, _ := p.Reading(key); got.Due != 1 || got.Err != nil {
			t.Errorf("reading %+v a minute after pods answer again: want 1", got)
		}
		dead.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, _ := p.Reading(key); got.Due != 1 || got.Err == nil || time.Since(got.At) < 45*time.Second {
			t.Errorf("reading %+v: want the last one, growing old", got)
		}
		f.change(func() { f.pods = nil })
		time.Sleep(listInterval)
		synctest.Wait()
		if got, _ := p.Reading(key); got.Ready != 0 {
			t.Errorf("reading %+v: want no ready pod", got)
		}
		// A new pod is polled at once, however long the other pods have not answered.
		dead.Store(false)
		f.change(func() { f.pods = []corev1.Pod{podAt("hpa", "10.0.0.3", build.ComponentRelay)} })
		before := asked.Load()
		time.Sleep(listInterval)
		synctest.Wait()
		if n := asked.Load(); n != before+1 {
			t.Errorf("a new pod was polled %d times: want once, at once", n-before)
		}
	})
}

// The queue is longest once the database is back, so the outage must not delay the next
// poll.
func TestDatabaseOutageDoesNotSlowPollsOfAWatchedFleet(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	f := &fleets{pools: []v1alpha1.RelayPool{scaledPool("hpa", &v1alpha1.Autoscaling{})}, pods: []corev1.Pod{podAt("hpa", "10.0.0.1", build.ComponentRelay)}}
	reader := answers{"10.0.0.1": func(context.Context) (Backlog, error) {
		asked.Add(1)
		return Backlog{}, fmt.Errorf("ask: %w", &StatusError{Status: 503})
	}}
	withPoller(t, reader, f, func(*Poller) {
		time.Sleep(time.Hour)
		if least := int64(time.Hour / (watchedInterval + listInterval)); asked.Load() < least {
			t.Errorf("%d requests in an hour: want at least %d", asked.Load(), least)
		}
	})
}

func TestPollerIsNotReadyWhileTheCacheFills(t *testing.T) {
	t.Parallel()
	f := &fleets{err: errors.New("not yet")}
	withPoller(t, answers{}, f, func(p *Poller) {
		time.Sleep(time.Minute)
		if p.AllRead() {
			t.Error("AllRead is true before the fleets were listed")
		}
		f.change(func() { f.err = nil })
		time.Sleep(listInterval)
		synctest.Wait()
		if !p.AllRead() {
			t.Error("AllRead is false although there is no fleet to read")
		}
	})
}
