package pool_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gagliardetto/solana-go"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
)

// annotate sets an annotation of the RelayPool.
func (r *rotation) annotate(t *testing.T, name, value string) {
	t.Helper()
	pooltest.Change(t, r.Stand, poolName, &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[name] = value
	})
}

// Empty old payers cannot fund new ones. The status says how much to send to which address.
// Somebody sends it, and the step is tried again.
func (w *works) emptyPayers(t *testing.T) {
	r := w.begin(t)
	r.operate(t)
	r.declare(t, 2, 0)
	r.rotate(t, 1, 2)
	old := r.addresses(t, 0)
	failed := r.Await(t, poolName, v1alpha1.ConditionStalled, "True/RotationFailed")
	named := slices.ContainsFunc(old, func(address solana.PublicKey) bool {
		return strings.Contains(failed.Message, "send at least 100000000 to "+address.String())
	})
	if !named || !strings.Contains(failed.Message, "annotate relaypool demo --overwrite "+keys.AnnotationRetry) {
		t.Errorf("message %q: want the missing 0.1 SOL, one of %v and the command", failed.Message, old)
	}
	if shown := r.Status(t, poolName).Rotation; shown.Step != v1alpha1.RotationFund || shown.Message != failed.Message {
		t.Errorf("the status says %v: want the step Fund and the condition's message", shown)
	}
	r.awaitNote(t, v1alpha1.EventRotationFailed, "send at least 100000000")
	r.give(t, old, sol)
	r.annotate(t, keys.AnnotationRetry, "1")
	r.check(t, 1, 2)
}

// give sends lamports to payers.
func (r *rotation) give(t *testing.T, to []solana.PublicKey, lamports uint64) {
	t.Helper()
	for _, address := range to {
		if err := r.Chain.Fund(address, lamports); err != nil {
			t.Fatal(err)
		}
		r.funded += lamports
	}
}

// provider is a proxy between the clients and the chain. It can become unreachable.
type provider struct {
	*httptest.Server
	away atomic.Bool
}

func newProvider(t *testing.T, chain string) *provider {
	t.Helper()
	target, err := url.Parse(chain)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		if p.away.Load() {
			panic(http.ErrAbortHandler) // the connection is cut
		}
		forward.ServeHTTP(rw, q)
	}))
	t.Cleanup(p.Close)
	return p
}

// The chain becomes unreachable while the Job moves the funds, and returns much later.
// There are more new keys than old ones.
func (w *works) lostChain(t *testing.T) {
	r := w.begin(t)
	between := newProvider(t, r.RPC)
	r.RPC = between.URL
	r.operate(t)
	r.declare(t, 2, sol)
	r.rotate(t, 1, 3)
	job := build.JobName(poolName, 1, build.StepFund)
	r.awaitQuery(t, job+" has signed", signedFund)
	between.away.Store(true)
	r.Await(t, poolName, v1alpha1.ConditionPoolInitialised, "Unknown/ChainUnavailable")
	if !r.jobs.Running(job) || r.story.reached(1, v1alpha1.RotationCutOver) {
		t.Errorf("without the chain %s ended, and the steps are %v: want that it waits", job, r.story.shownSteps(1))
	}
	between.away.Store(false)
	r.check(t, 1, 3)
	if got := r.jobs.Runs(); got != 3 {
		t.Errorf("%d processes ran: want 3, one for each Job", got)
	}
}

// Three keys become one, and a pause stops the rotation in the middle. After the rotation,
// somebody sends lamports to old addresses.
func (w *works) pausedThenFunded(t *testing.T) {
	r := w.begin(t)
	r.operate(t)
	r.declare(t, 3, sol)
	r.rotate(t, 1, 1)
	r.reach(t, 1, v1alpha1.RotationFund)
	pause := func(paused bool) {
		pooltest.Change(t, r.Stand, poolName, &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) { p.Spec.Paused = paused })
	}
	pause(true)
	r.awaitJob(t, build.JobName(poolName, 1, build.StepFund))
	// The pass that reads this change also finds that the Job is complete.
	pooltest.Change(t, r.Stand, poolName, &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) { p.Spec.Template.Labels = map[string]string{"team": "pools"} })
	r.Await(t, poolName, v1alpha1.ConditionReady, "True/Paused")
	if shown := r.Status(t, poolName).Rotation; shown.Revision != 1 || shown.Message != "spec.paused holds it" {
		t.Errorf("the status says %v: want revision 1, paused", shown)
	}
	var fresh corev1.Secret
	if r.Get(t, keys.SecretName(poolName, 1, 0), &fresh); fresh.Labels[keys.LabelState] != "incoming" {
		t.Errorf("the new key became %s while the RelayPool is paused: want incoming", fresh.Labels[keys.LabelState])
	}
	pause(false)
	r.check(t, 1, 1)

	r.story.expectAlarm()
	old := r.addresses(t, 0)[:2]
	r.give(t, old, sol/20)
	shown := r.Await(t, poolName, v1alpha1.ConditionFeePayersFunded, "True/RetiredKeyFunded")
	for _, address := range old {
		if !strings.Contains(shown.Message, address.String()) || !strings.Contains(shown.Message, keys.AnnotationSweepRetired) {
			t.Errorf("message %q: want the address %s and the command", shown.Message, address)
		}
		r.awaitNote(t, v1alpha1.EventRetiredKeyFunded, address.String())
	}
	r.annotate(t, keys.AnnotationSweepRetired, "1")
	r.Await(t, poolName, v1alpha1.ConditionFeePayersFunded, "True/Funded")
	// The balances are known before they are final. The fees are known when the Job is
	// complete.
	r.awaitJob(t, build.JobName(poolName, 1, build.StepSweep))
	r.check(t, 1, 1)
}

// The revision is raised again during the first rotation. The first rotation is finished,
// and the second follows.
func (w *works) raisedTwice(t *testing.T) {
	r := w.begin(t)
	r.operate(t)
	r.declare(t, 1, sol)
	r.rotate(t, 1, 1)
	r.reach(t, 1, v1alpha1.RotationFund)
	r.rotate(t, 2, 2)
	r.reach(t, 1, v1alpha1.RotationRetire)
	r.check(t, 2, 2)
	r.refuse(t, "a revision that is lowered", func(p *v1alpha1.RelayPool) { p.Spec.FeePayers.Rotation.Revision = 1 })
	r.refuse(t, "a revision that is raised by two", func(p *v1alpha1.RelayPool) { p.Spec.FeePayers.Rotation.Revision = 4 })
}

// refuse checks that the API server refuses the change.
func (r *rotation) refuse(t *testing.T, what string, change func(*v1alpha1.RelayPool)) {
	t.Helper()
	var p v1alpha1.RelayPool
	r.Get(t, poolName, &p)
	change(&p)
	if err := r.Client.Update(t.Context(), &p); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "one at a time") {
		t.Errorf("%s returns %v: want Invalid, with the reason", what, err)
	}
}

// The RelayPool is deleted in each step, with its fleet and its Jobs, and recreated. The
// existing keys are used again, in the states that they had.
func (w *works) deleted(t *testing.T) {
	r := w.begin(t)
	r.story.expectRebuilding()
	r.operate(t)
	r.declare(t, 2, sol)
	r.rotate(t, 1, 2)
	all := steps()
	for _, step := range all[:len(all)-1] {
		r.reach(t, 1, step)
		var gone v1alpha1.RelayPool
		r.Get(t, poolName, &gone)
		funded := map[string]string{}
		for _, secret := range r.secrets(t) {
			if address := secret.Annotations[keys.AnnotationAddress]; r.balance(t, solana.MustPublicKeyFromBase58(address)) > 0 {
				funded[secret.Name] = address
			}
		}
		if err := r.Client.Delete(t.Context(), &gone); err != nil {
			t.Fatal(err)
		}
		pooltest.Eventually(t, "the RelayPool is deleted", func() error {
			err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(&gone), &v1alpha1.RelayPool{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(errors.New("it is there"), err)
		})
		r.awaitDeletionEvents(t, &gone, funded)
		r.Create(t, r.Pool(poolName, func(p *v1alpha1.RelayPool) {
			p.Spec.FeePayers.Generate.Count = 2
			p.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: 1}
		}))
	}
	r.check(t, 1, 2)
}

// awaitDeletionEvents waits until events on a deleted RelayPool name each funded key.
func (r *rotation) awaitDeletionEvents(t *testing.T, of *v1alpha1.RelayPool, funded map[string]string) {
	t.Helper()
	if len(funded) == 0 {
		t.Errorf("at %v no key has funds", of.Status.Rotation)
	}
	for secret, address := range funded {
		pooltest.Eventually(t, fmt.Sprintf("at %s an event names %s in %s", of.Status.Rotation.Step, address, secret), func() error {
			var list eventsv1.EventList
			if err := r.Client.List(t.Context(), &list, client.InNamespace(r.Namespace)); err != nil {
				return err
			}
			var notes []string
			for i := range list.Items {
				e := &list.Items[i]
				if e.Reason != v1alpha1.EventFundedKeyLeft || e.Regarding.UID != of.UID {
					continue
				}
				if notes = append(notes, e.Note); strings.Contains(e.Note, address) && strings.Contains(e.Note, secret) {
					return nil
				}
			}
			return fmt.Errorf("there are %q", notes)
		})
	}
}

// awaitJob waits until a Job is complete.
func (r *rotation) awaitJob(t *testing.T, name string) {
	t.Helper()
	pooltest.Eventually(t, name+" is complete", func() error {
		var job batchv1.Job
		if r.Get(t, name, &job); job.Status.CompletionTime == nil {
			return fmt.Errorf("it is not: %s", r.Status(t, poolName).Rotation.Message)
		}
		return nil
	})
}

// awaitQuery waits until a query returns true.
func (r *rotation) awaitQuery(t *testing.T, what, query string) {
	t.Helper()
	pooltest.Eventually(t, what, func() error {
		var yes bool
		if err := r.database.QueryRow(t.Context(), query).Scan(&yes); err != nil {
			return err
		}
		if !yes {
			return fmt.Errorf("not yet: %v", r.Status(t, poolName).Rotation)
		}
		return nil
	})
}
