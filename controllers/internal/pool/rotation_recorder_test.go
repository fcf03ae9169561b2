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

// rotationRecorder watches the namespace of a rotation from its start, and records
// violations:
//   - a key is made twice, changed, deleted, or set back to an earlier state;
//   - a fleet has fewer ready pods than its RelayPool declares;
//   - Drain starts while a pod has an old key, or Sweep starts while a transaction that
//     an old key signed may still land;
//   - an alarm is raised about funds that the rotation itself moves.
type rotationRecorder struct {
	r     *rotation
	mutex sync.Mutex
	// rebuildAllowed: the test deletes the RelayPool, and its fleet with it. alarmAllowed:
	// the test funds a retired key.
	rebuildAllowed, alarmAllowed bool
	uid                          types.UID // of the RelayPool
	history                      []shownStep
	keys                         map[string]keyState
	ready                        bool // all pods of the fleet were available once
	violations                   []string
}

type shownStep struct {
	revision int32
	step     v1alpha1.RotationStep
}

type keyState struct {
	uid     types.UID
	content string
	state   int
}

// startRecorder watches a namespace until the test ends.
func startRecorder(t *testing.T, r *rotation) *rotationRecorder {
	t.Helper()
	s := &rotationRecorder{r: r, keys: map[string]keyState{}}
	s.watchList(t, &corev1.SecretList{}, func(kind watch.EventType, o runtime.Object) { s.recordSecret(kind, o.(*corev1.Secret)) })             //nolint:forcetypeassert // the list's item type
	s.watchList(t, &v1alpha1.RelayPoolList{}, func(_ watch.EventType, o runtime.Object) { s.recordPool(o.(*v1alpha1.RelayPool)) })              //nolint:forcetypeassert // likewise
	s.watchList(t, &appsv1.DeploymentList{}, func(kind watch.EventType, o runtime.Object) { s.recordDeployment(kind, o.(*appsv1.Deployment)) }) //nolint:forcetypeassert // likewise
	s.watchList(t, &batchv1.JobList{}, func(kind watch.EventType, o runtime.Object) { s.checkJob(t.Context(), kind, o.(*batchv1.Job)) })        //nolint:forcetypeassert // likewise
	return s
}

func (s *rotationRecorder) watchList(t *testing.T, list client.ObjectList, handle func(watch.EventType, runtime.Object)) {
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
				s.addViolation("watch %T: %v", list, event.Object)
				continue
			}
			handle(event.Type, event.Object)
		}
	}()
	t.Cleanup(func() { w.Stop(); <-ended })
}

// allowAlarm allows alarms about funds on retired keys from now on.
func (s *rotationRecorder) allowAlarm() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.alarmAllowed = true
}

// allowRebuild allows the fleet to be deleted and recreated with its RelayPool.
func (s *rotationRecorder) allowRebuild() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.rebuildAllowed = true
}

// addViolation records a violation.
func (s *rotationRecorder) addViolation(format string, args ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// allViolations returns the recorded violations.
func (s *rotationRecorder) allViolations() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.violations)
}

// hasReached reports whether the status has shown a step, or a later one.
func (s *rotationRecorder) hasReached(revision int32, step v1alpha1.RotationStep) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	all := steps()
	return slices.ContainsFunc(s.history, func(h shownStep) bool {
		return h.revision > revision || h.revision == revision && slices.Index(all, h.step) >= slices.Index(all, step)
	})
}

// shownSteps returns, in order, the steps of a revision that the status has shown.
func (s *rotationRecorder) shownSteps(revision int32) (out []v1alpha1.RotationStep) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, h := range s.history {
		if h.revision == revision {
			out = append(out, h.step)
		}
	}
	return out
}

func (s *rotationRecorder) recordPool(p *v1alpha1.RelayPool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionFeePayersFunded); c != nil && c.Reason == v1alpha1.ReasonRetiredKeyFunded && !s.alarmAllowed {
		s.violations = append(s.violations, "alarm of a retired key: "+c.Message)
	}
	if p.Status.Rotation == nil {
		return
	}
	now, same := shownStep{p.Status.Rotation.Revision, p.Status.Rotation.Step}, p.UID == s.uid
	if s.uid = p.UID; same {
		last := s.history[len(s.history)-1]
		if last == now {
			return
		}
		all := steps()
		if now.revision < last.revision || now.revision == last.revision && slices.Index(all, now.step) < slices.Index(all, last.step) {
			s.violations = append(s.violations, fmt.Sprintf("the status went back from %v to %v", last, now))
		}
	}
	s.history = append(s.history, now)
}

func (s *rotationRecorder) recordSecret(kind watch.EventType, secret *corev1.Secret) {
	if secret.Labels[keys.LabelPool] != poolName {
		return
	}
	if kind == watch.Deleted {
		s.addViolation("the key in Secret %s was deleted", secret.Name)
		return
	}
	now := keyState{secret.UID, string(secret.Data[keys.DataKey]), slices.Index([]string{"incoming", "active", "draining", "retired"}, secret.Labels[keys.LabelState])}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	last, known := s.keys[secret.Name]
	s.keys[secret.Name] = now
	switch {
	case now.content == "" || now.state < 0:
		s.violations = append(s.violations, fmt.Sprintf("Secret %s is not a key, or has an unknown state: %s", secret.Name, secret.Labels[keys.LabelState]))
	case known && (last.uid != now.uid || last.content != now.content):
		s.violations = append(s.violations, fmt.Sprintf("the key in Secret %s was made twice, or changed", secret.Name))
	case known && now.state < last.state:
		s.violations = append(s.violations, fmt.Sprintf("the key in Secret %s became %s again", secret.Name, secret.Labels[keys.LabelState]))
	}
}

func (s *rotationRecorder) recordDeployment(kind watch.EventType, d *appsv1.Deployment) {
	const wantPods = 2
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.ready = s.ready || d.Status.AvailableReplicas >= wantPods
	if s.ready && !s.rebuildAllowed && (kind == watch.Deleted || d.Status.AvailableReplicas < wantPods || *d.Spec.Replicas < wantPods) {
		s.violations = append(s.violations, fmt.Sprintf("%d pods of the fleet are available: want %d at any time", d.Status.AvailableReplicas, wantPods))
	}
}

// checkJob checks, for a new Job that drains or sweeps keys, that the keys are no longer
// used.
func (s *rotationRecorder) checkJob(ctx context.Context, kind watch.EventType, j *batchv1.Job) {
	if kind != watch.Added || !strings.HasSuffix(j.Name, "-drain") && !strings.HasSuffix(j.Name, "-sweep") {
		return
	}
	from, err := s.sourceKeys(ctx, j)
	if err == nil {
		err = s.checkUnmounted(ctx, from)
	}
	if err == nil && strings.HasSuffix(j.Name, "-sweep") {
		err = s.checkNothingCanLand(ctx, from)
	}
	if err != nil && ctx.Err() == nil {
		s.addViolation("when Job %s was created: %v", j.Name, err)
	}
}

// sourceKeys returns the addresses from which a Job moves lamports, by the names of their
// Secrets.
func (s *rotationRecorder) sourceKeys(ctx context.Context, j *batchv1.Job) (map[string]solana.PublicKey, error) {
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
		return nil, errors.New("no --from argument of the Job names a Secret with a key")
	}
	return from, nil
}

// checkUnmounted checks that no running pod of the fleet mounts one of the keys.
func (s *rotationRecorder) checkUnmounted(ctx context.Context, from map[string]solana.PublicKey) error {
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
				return fmt.Errorf("pod %s mounts Secret %s", pod.Name, secret)
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

// checkNothingCanLand checks that no transaction that the payers signed can still land.
func (s *rotationRecorder) checkNothingCanLand(ctx context.Context, from map[string]solana.PublicKey) error {
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
		return fmt.Errorf("%d submissions with transactions of the old keys may still land", open)
	}
	return nil
}
