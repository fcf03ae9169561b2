package keys

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// world models the state of a cluster that concerns keys. The state changes only by single
// writes, and the operator may die between any two of them.
type world struct {
	revision, count int32
	// revisionLimit and countLimit are the highest values to which people raise revision and
	// count.
	revisionLimit, countLimit int32
	retry                     int // the value of AnnotationRetry
	// named: the spec also names the Secret namedSecret, until somebody removes it from the spec.
	named       bool
	keys        map[string]Key
	funded      map[string]bool // whether a key has funds, by Secret
	jobs        map[string]Job
	jobKeys     map[string]JobWanted
	template    string // the Deployment's mounts, joined; empty: no Deployment
	replicas    int
	pods        []pod
	terminating []string // the mounts of terminating pods
}

// namedSecret is a Secret with a key that the operator did not make.
const namedSecret = "mine"

// pod is a replica of the Deployment. mounts are the mounts of its template. exists is false
// until the pod is made.
type pod struct {
	mounts string
	exists bool
}

func newWorld(count, countLimit, revisionLimit int32, replicas int) *world {
	return &world{replicas: replicas, count: count, countLimit: countLimit, revisionLimit: revisionLimit, keys: map[string]Key{}, funded: map[string]bool{}, jobs: map[string]Job{}, jobKeys: map[string]JobWanted{}}
}

// newNamedWorld returns a world with a fleet that used only the named Secret so far.
func newNamedWorld(count, countLimit, revisionLimit int32, replicas int) *world {
	w := newWorld(count, countLimit, revisionLimit, replicas)
	w.named, w.template = true, namedSecret
	w.pods = slices.Repeat([]pod{{namedSecret, true}}, replicas)
	return w
}

func (w *world) clone() *world {
	c := *w
	c.keys, c.funded, c.jobs, c.jobKeys = maps.Clone(w.keys), maps.Clone(w.funded), maps.Clone(w.jobs), maps.Clone(w.jobKeys)
	c.pods, c.terminating = slices.Clone(w.pods), slices.Clone(w.terminating)
	return &c
}

// id returns a text that is equal for worlds with the same state.
func (w *world) id() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d %d %t|", w.revision, w.count, w.retry, w.named)
	for _, name := range slices.Sorted(maps.Keys(w.keys)) {
		fmt.Fprintf(&b, "%s %s %t,", name, w.keys[name].State, w.funded[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		j := w.jobs[name]
		fmt.Fprintf(&b, "%s %s %t %s %s,", name, j.State, j.Deleting, j.InputsHash, j.Token)
	}
	fmt.Fprintf(&b, "|%s|%v|%v", w.template, w.pods, w.terminating)
	return b.String()
}

func (w *world) pool() *v1alpha1.RelayPool {
	p := &v1alpha1.RelayPool{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u"}}
	p.Spec.FeePayers.Generate = &v1alpha1.GeneratedKeys{Count: w.count}
	if w.revision > 0 {
		p.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: w.revision}
	}
	if w.retry > 0 {
		p.Annotations = map[string]string{AnnotationRetry: fmt.Sprint(w.retry)}
	}
	return p
}

func (w *world) input() Input {
	in := Input{Pool: w.pool(), Now: time.Unix(1e9, 0), Rollout: Rollout{Known: true, Complete: true}}
	if w.named {
		in.Refs = []refs.Payer{{Secret: namedSecret, Key: "key", Address: "address-of-" + namedSecret}}
	}
	for _, k := range w.keys {
		in.Keys.Keys = append(in.Keys.Keys, k)
	}
	slices.SortFunc(in.Keys.Keys, func(a, b Key) int { return strings.Compare(a.Secret, b.Secret) })
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		in.Jobs = append(in.Jobs, w.jobs[name])
	}
	if w.template != "" {
		in.Rollout.Template = strings.Split(w.template, ",")
	}
	for _, p := range w.pods {
		in.Rollout.Complete = in.Rollout.Complete && p.mounts == w.template
	}
	for _, mounts := range w.podMounts() {
		in.Rollout.Pods = append(in.Rollout.Pods, strings.Split(mounts, ",")...)
	}
	return in
}

// podMounts returns the mounts of all existing pods, each joined.
func (w *world) podMounts() []string {
	all := slices.Clone(w.terminating)
	for _, p := range w.pods {
		if p.exists {
			all = append(all, p.mounts)
		}
	}
	return all
}

// writes returns the operator's writes of one pass, in order. A write returns an error if
// it violates an invariant.
func (w *world) writes() []func(*world) error {
	plan := Decide(w.input())
	var all []func(*world) error
	if err := w.checkMounted(plan.Mounted); err != nil {
		return []func(*world) error{func(*world) error { return err }}
	}
	for _, k := range plan.Create {
		all = append(all, func(w *world) error { return w.create(k) })
	}
	for _, l := range plan.Label {
		all = append(all, func(w *world) error { return w.label(l) })
	}
	for _, j := range plan.DeleteJobs {
		all = append(all, func(w *world) error {
			j.Deleting = true
			w.jobs[j.Name] = j
			return nil
		})
	}
	if j := plan.Job; j != nil && j.Existing == nil {
		all = append(all, func(w *world) error { return w.startJob(*j) })
	}
	if !plan.Writes() && len(plan.Mounted) > 0 {
		var mounted []string
		for _, m := range plan.Mounted {
			mounted = append(mounted, m.Secret)
		}
		if template := strings.Join(mounted, ","); template != w.template {
			all = append(all, func(w *world) error { return w.deploy(template) })
		}
	}
	return all
}

// checkMounted checks that the pods get no key of a revision that has incoming keys, that they
// get a generated key if any exists, and the named key exactly as long as the spec has it.
func (w *world) checkMounted(all []Mount) error {
	mounted := slices.DeleteFunc(slices.Clone(all), func(m Mount) bool { return m.Secret == namedSecret })
	if named := len(all) - len(mounted); (named == 1) != w.named {
		return fmt.Errorf("the named key is mounted %d times; the spec has it: %t", named, w.named)
	}
	if len(mounted) == 0 && len(w.keys) > 0 {
		return fmt.Errorf("none of the %d keys is used", len(w.keys))
	}
	for _, m := range mounted {
		for _, k := range w.keys {
			if k.Revision == w.keys[m.Secret].Revision && k.State == v1alpha1.PayerIncoming {
				return fmt.Errorf("%s is used before %s is active", m.Secret, k.Secret)
			}
		}
	}
	return nil
}

func (w *world) create(k NewKey) error {
	if _, exists := w.keys[k.Secret]; exists {
		return fmt.Errorf("Secret %s would be overwritten", k.Secret)
	}
	w.keys[k.Secret] = Key{Revision: k.Revision, Index: k.Index, Secret: k.Secret, Address: "address-of-" + k.Secret, State: k.State,
		UID: types.UID("uid-" + k.Secret), ResourceVersion: "1"}
	w.funded[k.Secret] = k.State == v1alpha1.PayerActive // people fund active keys at once
	return nil
}

func (w *world) label(l LabelChange) error {
	k, exists := w.keys[l.Key.Secret]
	next := map[v1alpha1.FeePayerState]v1alpha1.FeePayerState{
		v1alpha1.PayerIncoming: v1alpha1.PayerActive, v1alpha1.PayerActive: v1alpha1.PayerDraining, v1alpha1.PayerDraining: v1alpha1.PayerRetired,
	}
	switch {
	case !exists:
		return fmt.Errorf("Secret %s is labelled but does not exist", l.Key.Secret)
	case next[k.State] != l.State:
		return fmt.Errorf("%s key %s is labelled %s", k.State, k.Secret, l.State)
	case l.State == v1alpha1.PayerRetired && w.funded[k.Secret]:
		return fmt.Errorf("key %s is retired before it was swept", k.Secret)
	case l.State == v1alpha1.PayerDraining && !w.hasSuccessor(k):
		return fmt.Errorf("key %s is draining before the newer keys are active", k.Secret)
	case l.State == v1alpha1.PayerRetired && w.mounted(k.Secret):
		return fmt.Errorf("key %s is retired while pods mount it", k.Secret)
	}
	k.State = l.State
	w.keys[k.Secret] = k
	return nil
}

// hasSuccessor reports whether newer keys exist and all of them are active.
func (w *world) hasSuccessor(k Key) bool {
	newer := 0
	for _, other := range w.keys {
		if other.Revision > k.Revision && other.State != v1alpha1.PayerActive {
			return false
		}
		if other.Revision > k.Revision {
			newer++
		}
	}
	return newer > 0
}

// mounted reports whether a pod mounts the key, or may be made with the key.
func (w *world) mounted(secret string) bool {
	all := append([]string{w.template}, w.podMounts()...)
	for _, p := range w.pods {
		all = append(all, p.mounts)
	}
	return slices.ContainsFunc(all, func(m string) bool {
		return slices.Contains(strings.Split(m, ","), secret)
	})
}

func (w *world) startJob(want JobWanted) error {
	if _, exists := w.jobs[want.Name]; exists {
		return fmt.Errorf("Job %s would be made twice", want.Name)
	}
	for _, m := range slices.Concat(want.From, want.To) {
		if m.Secret == namedSecret {
			return fmt.Errorf("the step %s concerns the named key", want.Step)
		}
	}
	for _, m := range want.From {
		if want.Step != v1alpha1.RotationFund && w.mounted(m.Secret) {
			return fmt.Errorf("the step %s begins while pods may sign with %s", want.Step, m.Secret)
		}
	}
	w.jobs[want.Name] = Job{Name: want.Name, State: JobRunning, InputsHash: want.InputsHash, Token: want.Token}
	w.jobKeys[want.Name] = want
	return nil
}

func (w *world) deploy(template string) error {
	for _, secret := range strings.Split(template, ",") {
		if secret != namedSecret && w.keys[secret].State != v1alpha1.PayerActive {
			return fmt.Errorf("the Deployment gets %s, which has the state %q", secret, w.keys[secret].State)
		}
	}
	if w.template == "" {
		w.pods = slices.Repeat([]pod{{template, true}}, w.replicas)
	}
	w.template = template
	return nil
}

// finishJob ends a Job.
func (w *world) finishJob(name string, succeeds bool) error {
	j := w.jobs[name]
	j.State = JobFailed
	if succeeds {
		j.State = JobComplete
		for _, m := range w.jobKeys[name].To {
			w.funded[m.Secret] = true
		}
		if w.jobKeys[name].Step == v1alpha1.RotationSweep {
			for _, m := range w.jobKeys[name].From {
				w.funded[m.Secret] = false
			}
		}
	}
	w.jobs[name] = j
	return nil
}

// otherSteps returns the possible steps of all participants except the operator: the Jobs,
// the Deployment's controller, the garbage collector and people. unfair are the steps that
// could prevent the end of a rotation.
func (w *world) otherSteps() (fair, unfair []func(*world) error) {
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		switch j := w.jobs[name]; {
		case j.Deleting:
			fair = append(fair, func(w *world) error { delete(w.jobs, name); return nil })
		case j.State == JobRunning:
			fair = append(fair, func(w *world) error { return w.finishJob(name, true) })
			if w.retry < 1 {
				unfair = append(unfair, func(w *world) error { return w.finishJob(name, false) })
			}
		case j.State == JobFailed && j.Token == fmt.Sprint(w.retry) || j.State == JobFailed && j.Token == "" && w.retry == 0:
			fair = append(fair, func(w *world) error { w.retry++; return nil })
		default: // somebody deletes an old Job
			unfair = append(unfair, func(w *world) error { delete(w.jobs, name); return nil })
		}
	}
	if len(w.terminating) > 0 {
		fair = append(fair, func(w *world) error { w.terminating = w.terminating[1:]; return nil })
	}
	for i, p := range w.pods {
		switch {
		case !p.exists:
			fair = append(fair, func(w *world) error { w.pods[i].exists = true; return nil })
		case p.mounts != w.template:
			fair = append(fair, func(w *world) error {
				w.terminating = append(w.terminating, p.mounts)
				w.pods[i].mounts = w.template
				return nil
			})
			// A node dies, and the controller has not replaced the pod yet.
			unfair = append(unfair, func(w *world) error { w.pods[i].exists = false; return nil })
		}
	}
	if w.named {
		unfair = append(unfair, func(w *world) error { w.named = false; return nil })
	}
	if w.revision < w.revisionLimit {
		unfair = append(unfair, func(w *world) error { w.revision++; return nil })
	}
	if w.count < w.countLimit {
		unfair = append(unfair, func(w *world) error { w.count++; return nil })
	}
	return fair, unfair
}

// done reports whether the fleet uses the wanted revision and nothing is left to do.
func (w *world) done() bool {
	active := 0
	for _, k := range w.keys {
		want := v1alpha1.PayerRetired
		if k.Revision == w.revision {
			want = v1alpha1.PayerActive
			active++
		}
		if k.State != want || w.funded[k.Secret] != (want == v1alpha1.PayerActive) {
			return false
		}
	}
	plan := Decide(w.input())
	return active == int(w.count) && len(w.writes()) == 0 && !plan.Rotating &&
		!slices.ContainsFunc(w.pods, func(p pod) bool { return p.mounts != w.template || !p.exists }) &&
		!slices.ContainsFunc(w.input().Jobs, func(j Job) bool {
			return !strings.HasPrefix(j.Name, fmt.Sprintf("p-payer-%d-", w.revision))
		})
}

// runToEnd takes steps of all participants until nothing is left to do, or until it reaches
// a world in completing. This is the set of worlds from which a rotation is known to
// complete. Then runToEnd adds all worlds that it has passed through.
func (w *world) runToEnd(completing map[string]bool) error {
	var passed []string
	for range 500 {
		id := w.id()
		steps, _ := w.otherSteps()
		steps = append(w.writes(), steps...)
		if completing[id] || len(steps) == 0 && w.done() {
			for _, id := range append(passed, id) {
				completing[id] = true
			}
			return nil
		}
		if len(steps) == 0 {
			return fmt.Errorf("the rotation stops at %s", id)
		}
		if err := steps[0](w); err != nil {
			return err
		}
		passed = append(passed, id)
	}
	return fmt.Errorf("the rotation does not end: %s", w.id())
}

// TestRotationCompletesAfterAnyInterruption visits every reachable world of five fleets. The
// operator may die between any two writes. Jobs may fail and vanish. Pods may be in any
// state of a rollout. The revision and the count may be raised at any time. In no world is
// a key overwritten, or retired before it was swept or while a pod has it. From every world,
// the last rotation completes.
func TestRotationCompletesAfterAnyInterruption(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]*world{
		"one key and two rotations, one pod":            newWorld(1, 1, 2, 1),
		"two keys and a rotation, two pods":             newWorld(2, 2, 1, 2),
		"one key that becomes two, a rotation, one pod": newWorld(1, 2, 1, 1),
		"a fleet that is scaled to zero":                newWorld(2, 2, 1, 0),
		"a named key beside a generated one, one pod":   newNamedWorld(1, 1, 1, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen, completing, queue := map[string]bool{start.id(): true}, map[string]bool{}, []*world{start}
			deployed := 0
			for len(queue) > 0 {
				w := queue[len(queue)-1]
				queue = queue[:len(queue)-1]
				if w.template != "" {
					deployed++
				}
				if err := w.clone().runToEnd(completing); err != nil {
					t.Fatalf("from\n%s\n%v", w.id(), err)
				}
				fair, unfair := w.otherSteps()
				next := slices.Concat(fair, unfair)
				// The operator may die after each of its writes of a pass.
				if writes := w.writes(); len(writes) > 0 {
					next = append(next, writes[0])
					after := w.clone()
					for i, write := range writes {
						if err := write(after); err != nil {
							t.Fatalf("in\n%s\nwrite %d of a pass: %v", w.id(), i, err)
						}
						if id := after.id(); !seen[id] {
							seen[id] = true
							queue = append(queue, after.clone())
						}
					}
				}
				for _, step := range next {
					after := w.clone()
					if err := step(after); err != nil {
						t.Fatalf("in\n%s\n%v", w.id(), err)
					}
					if id := after.id(); !seen[id] {
						seen[id] = true
						queue = append(queue, after)
					}
				}
			}
			t.Logf("%d worlds, %d of them with a fleet", len(seen), deployed)
			if len(seen) < 300 || deployed < 200 {
				t.Errorf("%d worlds, %d with a fleet: want at least 300 and 200, or the model explores too little", len(seen), deployed)
			}
		})
	}
}
