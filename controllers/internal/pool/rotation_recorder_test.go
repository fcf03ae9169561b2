package pool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gagliardetto/solana-go"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// story watches the namespace of a rotation from its start, and records violations:
//   - a key is made twice, changed, deleted, or set back to an earlier state;
//   - a fleet has fewer ready pods than its RelayPool declares;
//   - Drain begins while a pod has an old key, or Sweep begins while a transaction that
//     an old key signed may still land;
//   - an alarm is raised about funds that the rotation itself moves.
type story struct {
	r     *rotation
	mutex sync.Mutex
	// rebuilt: the test deletes the RelayPool, and its fleet with it. alarmed: the test
	// funds a retired key.
	rebuilt, alarmed bool
	uid              types.UID // the RelayPool's
	shown            []shown
	keys             map[string]seenKey
	ready            bool // all pods of the fleet were available once
	wrong            []string
}

type shown struct {
	revision int32
	step     v1alpha1.RotationStep
}

type seenKey struct {
	uid     types.UID
	content string
	state   int
}

// watchStory watches a namespace until the test ends.
func watchStory(t *testing.T, r *rotation) *story {
	t.Helper()
	s := &story{r: r, keys: map[string]seenKey{}}
	s.follow(t, &corev1.SecretList{}, func(kind watch.EventType, o runtime.Object) { s.secret(kind, o.(*corev1.Secret)) })             //nolint:forcetypeassert // the list's item type
	s.follow(t, &v1alpha1.RelayPoolList{}, func(_ watch.EventType, o runtime.Object) { s.pool(o.(*v1alpha1.RelayPool)) })              //nolint:forcetypeassert // likewise
	s.follow(t, &appsv1.DeploymentList{}, func(kind watch.EventType, o runtime.Object) { s.deployment(kind, o.(*appsv1.Deployment)) }) //nolint:forcetypeassert // likewise
	s.follow(t, &batchv1.JobList{}, func(kind watch.EventType, o runtime.Object) { s.job(t.Context(), kind, o.(*batchv1.Job)) })       //nolint:forcetypeassert // likewise
	return s
}

func (s *story) follow(t *testing.T, list client.ObjectList, see func(watch.EventType, runtime.Object)) {
	t.Helper()
	w, err := s.r.Client.Watch(t.Context(), list, client.InNamespace(s.r.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range w.ResultChan() {
			if event.Type == watch.Error {
				s.blame("watch %T: %v", list, event.Object)
				continue
			}
			see(event.Type, event.Object)
		}
	}()
	t.Cleanup(func() { w.Stop(); <-ended })
}

// expectAlarm allows alarms about funds on retired keys from now on.
func (s *story) expectAlarm() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.alarmed = true
}

// expectRebuilding allows the fleet to be deleted and recreated with its RelayPool.
func (s *story) expectRebuilding() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.rebuilt = true
}

// blame records a violation.
func (s *story) blame(format string, args ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// faults returns the recorded violations.
func (s *story) faults() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.wrong)
}

// reached reports whether the status has shown a step, or a later one.
func (s *story) reached(revision int32, step v1alpha1.RotationStep) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	all := steps()
	return slices.ContainsFunc(s.shown, func(one shown) bool {
		return one.revision > revision || one.revision == revision && slices.Index(all, one.step) >= slices.Index(all, step)
	})
}

// shownSteps returns, in order, the steps of a revision that the status has shown.
func (s *story) shownSteps(revision int32) (out []v1alpha1.RotationStep) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, one := range s.shown {
		if one.revision == revision {
			out = append(out, one.step)
		}
	}
	return out
}

func (s *story) pool(p *v1alpha1.RelayPool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionFeePayersFunded); c != nil && c.Reason == v1alpha1.ReasonRetiredKeyFunded && !s.alarmed {
		s.wrong = append(s.wrong, "alarm of a retired key: "+c.Message)
	}
	if p.Status.Rotation == nil {
		return
	}
	now, same := shown{p.Status.Rotation.Revision, p.Status.Rotation.Step}, p.UID == s.uid
	if s.uid = p.UID; same {
		last := s.shown[len(s.shown)-1]
		if last == now {
			return
		}
		all := steps()
		if now.revision < last.revision || now.revision == last.revision && slices.Index(all, now.step) < slices.Index(all, last.step) {
			s.wrong = append(s.wrong, fmt.Sprintf("the status goes back from %v to %v", last, now))
		}
	}
	s.shown = append(s.shown, now)
}

func (s *story) secret(kind watch.EventType, secret *corev1.Secret) {
	if secret.Labels[keys.LabelPool] != poolName {
		return
	}
	if kind == watch.Deleted {
		s.blame("the key in Secret %s was deleted", secret.Name)
		return
	}
	now := seenKey{secret.UID, string(secret.Data[keys.DataKey]), slices.Index([]string{"incoming", "active", "draining", "retired"}, secret.Labels[keys.LabelState])}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	last, known := s.keys[secret.Name]
	s.keys[secret.Name] = now
	switch {
	case now.content == "" || now.state < 0:
		s.wrong = append(s.wrong, fmt.Sprintf("Secret %s is not a key, or has an unknown state: %s", secret.Name, secret.Labels[keys.LabelState]))
	case known && (last.uid != now.uid || last.content != now.content):
		s.wrong = append(s.wrong, fmt.Sprintf("the key in Secret %s was made twice, or changed", secret.Name))
	case known && now.state < last.state:
		s.wrong = append(s.wrong, fmt.Sprintf("the key in Secret %s became %s again", secret.Name, secret.Labels[keys.LabelState]))
	}
}

func (s *story) deployment(kind watch.EventType, d *appsv1.Deployment) {
	const whole = 2
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.ready = s.ready || d.Status.AvailableReplicas >= whole
	if s.ready && !s.rebuilt && (kind == watch.Deleted || d.Status.AvailableReplicas < whole || *d.Spec.Replicas < whole) {
		s.wrong = append(s.wrong, fmt.Sprintf("of the fleet's pods %d are available: want %d at any time", d.Status.AvailableReplicas, whole))
	}
}

// job checks that the keys of a new Job that drains or sweeps are no longer used.
func (s *story) job(ctx context.Context, kind watch.EventType, j *batchv1.Job) {
	if kind != watch.Added || !strings.HasSuffix(j.Name, "-drain") && !strings.HasSuffix(j.Name, "-sweep") {
		return
	}
	from, err := s.takenFrom(ctx, j)
	if err == nil {
		err = s.noneMounts(ctx, from)
	}
	if err == nil && strings.HasSuffix(j.Name, "-sweep") {
		err = s.noneMayLand(ctx, from)
	}
	if err != nil && ctx.Err() == nil {
		s.blame("when Job %s began: %v", j.Name, err)
	}
}

// takenFrom returns the addresses from which a Job moves lamports, by the names of their
// Secrets.
func (s *story) takenFrom(ctx context.Context, j *batchv1.Job) (map[string]solana.PublicKey, error) {
	var list corev1.SecretList
	if err := s.r.Client.List(ctx, &list, client.InNamespace(s.r.Namespace), client.MatchingLabels{keys.LabelPool: poolName}); err != nil {
		return nil, err
	}
	from := map[string]solana.PublicKey{}
	for _, arg := range j.Spec.Template.Spec.Containers[0].Args {
		for i := range list.Items {
			if secret := &list.Items[i]; strings.HasPrefix(arg, "--from=") && strings.Contains(arg, "/"+secret.Name+"/") {
				from[secret.Name] = solana.MustPublicKeyFromBase58(secret.Annotations[keys.AnnotationAddress])
			}
		}
	}
	if len(from) == 0 {
		return nil, errors.New("it takes from no key")
	}
	return from, nil
}

// noneMounts checks that no running pod of the fleet has one of the keys.
func (s *story) noneMounts(ctx context.Context, from map[string]solana.PublicKey) error {
	var pods corev1.PodList
	if err := s.r.Client.List(ctx, &pods, client.InNamespace(s.r.Namespace), client.MatchingLabels{build.LabelComponent: build.ComponentRelay}); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, secret := range mountedBy(pod) {
			if _, old := from[secret]; old {
				return fmt.Errorf("a pod has %s", secret)
			}
		}
	}
	return nil
}

// mountedBy returns the Secrets that a pod mounts.
func mountedBy(pod *corev1.Pod) (out []string) {
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.Secret != nil {
				out = append(out, source.Secret.Name)
			}
		}
	}
	return out
}

// noneMayLand checks that no transaction that the payers signed can still land.
func (s *story) noneMayLand(ctx context.Context, from map[string]solana.PublicKey) error {
	var payers [][]byte
	for _, address := range from {
		payers = append(payers, address.Bytes())
	}
	const query = `
SELECT count(*) FROM submissions s JOIN attempts a ON a.submission_id = s.id WHERE s.state = 'processing' AND a.fee_payer = ANY ($1)`
	var open int
	if err := s.r.database.QueryRow(ctx, query, payers).Scan(&open); err != nil {
		return err
	}
	if open > 0 {
		return fmt.Errorf("%d submissions that it signed may land", open)
	}
	return nil
}
