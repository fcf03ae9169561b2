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

// Empty old payers cannot fund new ones. The status says how many lamports to send to which
// address. After they are sent, the step is retried.
func (w *rotationSuite) oldPayersEmpty(t *testing.T) {
	r := w.newRotation(t)
	r.startOperator(t)
	r.createPool(t, 2, 0)
	r.requestRotation(t, 1, 2)
	old := r.addresses(t, 0)
	failed := r.Await(t, poolName, v1alpha1.ConditionStalled, "True/RotationFailed")
	named := slices.ContainsFunc(old, func(address solana.PublicKey) bool {
		return strings.Contains(failed.Message, "send at least 100000000 to "+address.String())
	})
	if !named || !strings.Contains(failed.Message, "annotate relaypool demo --overwrite "+keys.AnnotationRetry) {
		t.Errorf("message %q: want the missing 0.1 SOL, one of %v and the command", failed.Message, old)
	}
	if shown := r.Status(t, poolName).Rotation; shown.Step != v1alpha1.RotationFund || shown.Message != failed.Message {
		t.Errorf("status.rotation is %v: want the step Fund and the condition's message", shown)
	}
	r.awaitNote(t, v1alpha1.EventRotationFailed, "send at least 100000000")
	r.sendLamports(t, old, sol)
	r.annotate(t, keys.AnnotationRetry, "1")
	r.checkDone(t, 1, 2)
}

// sendLamports sends lamports to payers.
func (r *rotation) sendLamports(t *testing.T, to []solana.PublicKey, lamports uint64) {
	t.Helper()
	for _, address := range to {
		if err := r.Chain.Fund(address, lamports); err != nil {
			t.Fatal(err)
		}
		r.funded += lamports
	}
}

// rpcProxy is a proxy between the clients and the chain. It can become unreachable.
type rpcProxy struct {
	*httptest.Server
	unreachable atomic.Bool
}

func newRPCProxy(t *testing.T, chain string) *rpcProxy {
	t.Helper()
	target, err := url.Parse(chain)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	p := &rpcProxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		if p.unreachable.Load() {
			panic(http.ErrAbortHandler) // the connection is cut
		}
		forward.ServeHTTP(rw, q)
	}))
	t.Cleanup(p.Close)
	return p
}

// The chain becomes unreachable while the Job moves the funds, and is reachable again much
// later. There are more new keys than old ones.
func (w *rotationSuite) chainUnreachable(t *testing.T) {
	r := w.newRotation(t)
	proxy := newRPCProxy(t, r.RPC)
	r.RPC = proxy.URL
	r.startOperator(t)
	r.createPool(t, 2, sol)
	r.requestRotation(t, 1, 3)
	job := build.JobName(poolName, 1, build.StepFund)
	r.awaitQuery(t, job+" has signed", fundSignedQuery)
	proxy.unreachable.Store(true)
	r.Await(t, poolName, v1alpha1.ConditionPoolInitialised, "Unknown/ChainUnavailable")
	if !r.jobs.Running(job) || r.recorder.hasReached(1, v1alpha1.RotationCutOver) {
		t.Errorf("without the chain, Job %s ended or the rotation continued, steps %v; want the Job to wait", job, r.recorder.shownSteps(1))
	}
	proxy.unreachable.Store(false)
	r.checkDone(t, 1, 3)
	if got := r.jobs.Runs(); got != 3 {
		t.Errorf("%d processes ran: want 3, one for each Job", got)
	}
}

// Three keys are replaced by one, and a pause stops the rotation in the middle. After the
// rotation, somebody sends lamports to old addresses.
func (w *rotationSuite) pausedThenRetiredKeysFunded(t *testing.T) {
	r := w.newRotation(t)
	r.startOperator(t)
	r.createPool(t, 3, sol)
	r.requestRotation(t, 1, 1)
	r.awaitStep(t, 1, v1alpha1.RotationFund)
	pause := func(paused bool) {
		pooltest.Change(t, r.Stand, poolName, &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) { p.Spec.Paused = paused })
	}
	pause(true)
	r.awaitJob(t, build.JobName(poolName, 1, build.StepFund))
	// The pass that reads this change also finds that the Job is complete.
	pooltest.Change(t, r.Stand, poolName, &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) { p.Spec.Template.Labels = map[string]string{"team": "pools"} })
	r.Await(t, poolName, v1alpha1.ConditionReady, "True/Paused")
	if shown := r.Status(t, poolName).Rotation; shown.Revision != 1 || shown.Message != "spec.paused is true" {
		t.Errorf("status.rotation is %v: want revision 1, paused", shown)
	}
	var fresh corev1.Secret
	if r.Get(t, keys.SecretName(poolName, 1, 0), &fresh); fresh.Labels[keys.LabelState] != "incoming" {
		t.Errorf("the new key became %s while the RelayPool is paused: want incoming", fresh.Labels[keys.LabelState])
	}
	pause(false)
	r.checkDone(t, 1, 1)

	r.recorder.allowAlarm()
	old := r.addresses(t, 0)[:2]
	r.sendLamports(t, old, sol/20)
	shown := r.Await(t, poolName, v1alpha1.ConditionFeePayersFunded, "True/RetiredKeyFunded")
	for _, address := range old {
		if !strings.Contains(shown.Message, address.String()) || !strings.Contains(shown.Message, keys.AnnotationSweepRetired) {
			t.Errorf("message %q: want the address %s and the command", shown.Message, address)
		}
		r.awaitNote(t, v1alpha1.EventRetiredKeyFunded, address.String())
	}
	r.annotate(t, keys.AnnotationSweepRetired, "1")
	r.Await(t, poolName, v1alpha1.ConditionFeePayersFunded, "True/Funded")
	// The status shows the balances before they are final. The fees are known when the Job
	// is complete.
	r.awaitJob(t, build.JobName(poolName, 1, build.StepSweep))
	r.checkDone(t, 1, 1)
}

// The revision is raised again during the first rotation. The first rotation is finished,
// and the second follows.
func (w *rotationSuite) secondRotationDuringFirst(t *testing.T) {
	r := w.newRotation(t)
	r.startOperator(t)
	r.createPool(t, 1, sol)
	r.requestRotation(t, 1, 1)
	r.awaitStep(t, 1, v1alpha1.RotationFund)
	r.requestRotation(t, 2, 2)
	r.awaitStep(t, 1, v1alpha1.RotationRetire)
	r.checkDone(t, 2, 2)
	r.checkRefused(t, "a revision that is lowered", func(p *v1alpha1.RelayPool) { p.Spec.FeePayers.Rotation.Revision = 1 })
	r.checkRefused(t, "a revision that is raised by two", func(p *v1alpha1.RelayPool) { p.Spec.FeePayers.Rotation.Revision = 4 })
}

// checkRefused checks that the API server refuses the change.
func (r *rotation) checkRefused(t *testing.T, what string, change func(*v1alpha1.RelayPool)) {
	t.Helper()
	var p v1alpha1.RelayPool
	r.Get(t, poolName, &p)
	change(&p)
	if err := r.Client.Update(t.Context(), &p); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "can only be raised by one") {
		t.Errorf("%s returns %v: want Invalid, with the reason", what, err)
	}
}

// The RelayPool is deleted in each step, with its fleet and its Jobs, and recreated. The
// existing keys are used again, with their earlier states.
func (w *rotationSuite) poolDeletedInEachStep(t *testing.T) {
	r := w.newRotation(t)
	r.recorder.allowRebuild()
	r.startOperator(t)
	r.createPool(t, 2, sol)
	r.requestRotation(t, 1, 2)
	all := steps()
	for _, step := range all[:len(all)-1] {
		r.awaitStep(t, 1, step)
		var deleted v1alpha1.RelayPool
		r.Get(t, poolName, &deleted)
		funded := map[string]string{}
		for _, secret := range r.secrets(t) {
			if address := secret.Annotations[keys.AnnotationAddress]; r.balance(t, solana.MustPublicKeyFromBase58(address)) > 0 {
				funded[secret.Name] = address
			}
		}
		if err := r.Client.Delete(t.Context(), &deleted); err != nil {
			t.Fatal(err)
		}
		pooltest.Eventually(t, "the RelayPool is deleted", func() error {
			err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(&deleted), &v1alpha1.RelayPool{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(errors.New("it still exists"), err)
		})
		r.awaitDeletionEvents(t, &deleted, funded)
		r.Create(t, r.Pool(poolName, func(p *v1alpha1.RelayPool) {
			p.Spec.FeePayers.Generate.Count = 2
			p.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: 1}
		}))
	}
	r.checkDone(t, 1, 2)
}

// awaitDeletionEvents waits until events on a deleted RelayPool name each funded key.
func (r *rotation) awaitDeletionEvents(t *testing.T, p *v1alpha1.RelayPool, funded map[string]string) {
	t.Helper()
	if len(funded) == 0 {
		t.Errorf("at %v no key has funds", p.Status.Rotation)
	}
	for secret, address := range funded {
		pooltest.Eventually(t, fmt.Sprintf("at %s an event names %s in %s", p.Status.Rotation.Step, address, secret), func() error {
			var list eventsv1.EventList
			if err := r.Client.List(t.Context(), &list, client.InNamespace(r.Namespace)); err != nil {
				return err
			}
			var notes []string
			for i := range list.Items {
				e := &list.Items[i]
				if e.Reason != v1alpha1.EventFundedKeyLeft || e.Regarding.UID != p.UID {
					continue
				}
				if notes = append(notes, e.Note); strings.Contains(e.Note, address) && strings.Contains(e.Note, secret) {
					return nil
				}
			}
			return fmt.Errorf("the notes are %q", notes)
		})
	}
}

// awaitJob waits until a Job is complete.
func (r *rotation) awaitJob(t *testing.T, name string) {
	t.Helper()
	pooltest.Eventually(t, name+" is complete", func() error {
		var job batchv1.Job
		if r.Get(t, name, &job); job.Status.CompletionTime == nil {
			return fmt.Errorf("it is not complete: %s", r.Status(t, poolName).Rotation.Message)
		}
		return nil
	})
}

// awaitQuery waits until a query returns true.
func (r *rotation) awaitQuery(t *testing.T, what, query string) {
	t.Helper()
	pooltest.Eventually(t, what, func() error {
		var result bool
		if err := r.database.QueryRow(t.Context(), query).Scan(&result); err != nil {
			return err
		}
		if !result {
			return fmt.Errorf("not yet: %v", r.Status(t, poolName).Rotation)
		}
		return nil
	})
}
