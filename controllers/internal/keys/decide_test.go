package keys

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// inputSpec is a short form of the input of Decide.
type inputSpec struct {
	revision, count int32
	keys            []Key
	change          func(*Input)
}

func key(revision, index int32, state v1alpha1.FeePayerState) Key {
	name := SecretName("p", revision, index)
	return Key{Revision: revision, Index: index, Secret: name, Address: "address-of-" + name, State: state,
		UID: types.UID("uid-" + name), ResourceVersion: "1", Created: now.Add(-time.Hour)}
}

func (s inputSpec) input() Input {
	w := world{revision: s.revision, count: s.count}
	in := Input{Pool: w.pool(), Keys: Facts{Keys: s.keys}, Rollout: Rollout{Known: true, Complete: true}, Balances: map[string]Balance{}, Now: now}
	in.Pool.CreationTimestamp = metav1.Time{Time: now.Add(-2 * time.Hour)}
	if s.change != nil {
		s.change(&in)
	}
	return in
}

func runningJob(step v1alpha1.RotationStep, revision int32, from, to []Key) Job {
	want := JobWanted{Step: step, Revision: revision, From: mounts(from), To: mounts(to)}
	return Job{Name: JobName("p", revision, step), UID: "job", State: JobRunning, InputsHash: inputsHash(want, "")}
}

func endedJob(j Job, state JobState, message string) Job {
	j.State, j.Message = state, message
	return j
}

// summary describes a plan in words.
func summary(p Plan) []string {
	var all []string
	for _, k := range p.Create {
		all = append(all, fmt.Sprintf("create %s %s", k.Secret, k.State))
	}
	for _, l := range p.Label {
		all = append(all, fmt.Sprintf("label %s %s", l.Key.Secret, l.State))
	}
	for _, j := range p.DeleteJobs {
		all = append(all, "delete "+j.Name)
	}
	if p.Job != nil {
		verb := "make"
		if p.Job.Existing != nil {
			verb = "keep"
		}
		all = append(all, verb+" "+p.Job.Name)
	}
	for _, m := range p.Mounted {
		all = append(all, "mount "+m.Secret)
	}
	if p.Rotation != nil {
		all = append(all, fmt.Sprintf("step %s of %d", p.Rotation.Step, p.Rotation.Revision))
	}
	for _, problem := range p.Problems {
		all = append(all, "problem "+problem.Reason)
	}
	return all
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const (
		active, incoming  = v1alpha1.PayerActive, v1alpha1.PayerIncoming
		draining, retired = v1alpha1.PayerDraining, v1alpha1.PayerRetired
		fund, sweep       = v1alpha1.RotationFund, v1alpha1.RotationSweep
	)
	old, fresh := key(0, 0, active), key(1, 0, incoming)
	both := []Key{old, fresh}
	mine := []refs.Payer{{Secret: "mine", Key: "key", Address: "address-of-mine"}}
	fundJob := runningJob(fund, 1, []Key{old}, []Key{fresh})
	tests := map[string]struct {
		inputSpec
		want    []string
		message string // a part of the rotation's message, or of the last problem's message
	}{
		"a new RelayPool gets its keys, which are active at once": {inputSpec: inputSpec{count: 2},
			want: []string{"create p-payer-0-0 Active", "create p-payer-0-1 Active"}},
		"a new RelayPool with a revision gets keys of this revision": {inputSpec: inputSpec{revision: 3, count: 1},
			want: []string{"create p-payer-3-0 Active"}},
		"the missing keys are made when the count is raised": {inputSpec: inputSpec{count: 2, keys: []Key{old}},
			want: []string{"create p-payer-0-1 Active", "mount p-payer-0-0"}},
		"the existing keys stay in use when the count is lowered, because they have funds": {
			inputSpec: inputSpec{count: 1, keys: []Key{old, key(0, 1, active)}},
			want:      []string{"mount p-payer-0-0", "mount p-payer-0-1"}},
		"a foreign Secret is neither used nor replaced": {
			inputSpec: inputSpec{count: 2, keys: []Key{old}, change: func(in *Input) {
				in.Keys.Problems = []refs.Problem{{Kind: refs.Secret, Name: "p-payer-0-1", Reason: v1alpha1.ReasonSecretForeign}}
			}},
			want: []string{"mount p-payer-0-0", "problem SecretForeign"}},
		"the lack of a usable key is reported": {
			inputSpec: inputSpec{count: 1, change: func(in *Input) {
				in.Keys.Problems = []refs.Problem{{Kind: refs.Secret, Name: "p-payer-0-0", Reason: v1alpha1.ReasonSecretForeign}}
			}},
			want: []string{"problem SecretForeign", "problem NoPayers"}},
		"a lost key is reported and not replaced": {
			inputSpec: inputSpec{count: 2, keys: []Key{old}, change: func(in *Input) {
				in.Pool.Status.FeePayers = []v1alpha1.FeePayerStatus{{Address: "lost", SecretName: "p-payer-0-1", State: active}}
			}},
			want: []string{"mount p-payer-0-0", "problem SecretNotFound"}, message: "the fee payer lost, is missing"},
		"a lost incoming key without funds is made again": {
			inputSpec: inputSpec{revision: 1, count: 2, keys: both, change: func(in *Input) {
				in.Pool.Status.FeePayers = []v1alpha1.FeePayerStatus{{Address: "lost", SecretName: "p-payer-1-1", State: incoming}}
			}},
			want: []string{"create p-payer-1-1 Incoming", "mount p-payer-0-0", "step Generate of 1"}},
		"a new revision replaces keys that are all lost": {
			inputSpec: inputSpec{revision: 1, count: 1, change: func(in *Input) {
				in.Pool.Status.FeePayers = []v1alpha1.FeePayerStatus{{Address: "lost", SecretName: "p-payer-0-0", State: active}}
			}},
			want: []string{"create p-payer-1-0 Active", "problem SecretNotFound"}},
		"keys of an earlier RelayPool with a higher revision stay in use": {
			inputSpec: inputSpec{count: 1, keys: []Key{key(0, 0, retired), key(1, 0, active)}},
			want:      []string{"mount p-payer-1-0", "step Done of 1"}, message: "to 2 to start a rotation"},
		"retired keys are not used again": {
			inputSpec: inputSpec{count: 1, keys: []Key{key(0, 0, retired)}},
			want:      []string{"problem NoPayers"}, message: "raise spec.feePayers.rotation.revision to 1"},
		"a rotation goes up by one revision at a time": {
			inputSpec: inputSpec{revision: 3, count: 1, keys: []Key{old}},
			want:      []string{"create p-payer-1-0 Incoming", "mount p-payer-0-0", "step Generate of 1"}},
		"a rotation waits while a foreign Secret has the name of a key": {
			inputSpec: inputSpec{revision: 1, count: 2, keys: both, change: func(in *Input) {
				in.Keys.Problems = []refs.Problem{{Kind: refs.Secret, Name: "p-payer-1-1", Reason: v1alpha1.ReasonSecretForeign}}
			}},
			want: []string{"mount p-payer-0-0", "step Generate of 1", "problem SecretForeign"}, message: "under another name"},
		"a Job that would fail is not made": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) { in.Blocked = "the database is unknown" }},
			want:      []string{"mount p-payer-0-0", "step Fund of 1"}, message: "the database is unknown"},
		"a running Job is kept": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) { in.Jobs = []Job{fundJob} }},
			want:      []string{"keep p-payer-1-fund", "mount p-payer-0-0", "step Fund of 1"}, message: "is running"},
		"the message about a running Job has the error of its last try": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) {
				in.Jobs = []Job{fundJob}
				in.Jobs[0].Message = "the database does not answer"
			}},
			want: []string{"keep p-payer-1-fund", "mount p-payer-0-0", "step Fund of 1"}, message: "its last try ended with: the database does not answer"},
		"a complete Job for other keys is deleted": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) {
				other := runningJob(fund, 1, []Key{key(0, 5, active)}, []Key{fresh})
				in.Jobs = []Job{endedJob(other, JobComplete, "")}
			}},
			want: []string{"delete p-payer-1-fund", "mount p-payer-0-0", "step Fund of 1"}},
		"a foreign Job is left alone": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) {
				in.Jobs = []Job{endedJob(fundJob, JobComplete, "")}
				in.Jobs[0].Foreign = true
			}},
			want: []string{"mount p-payer-0-0", "step Fund of 1"}, message: "belongs to somebody else"},
		"a failed Job waits for a person, and the message says why": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) {
				in.Jobs = []Job{endedJob(fundJob, JobFailed, "the database does not answer")}
			}},
			want: []string{"mount p-payer-0-0", "step Fund of 1", "problem RotationFailed"}, message: "the database does not answer"},
		"a failed Job is deleted when a person requests a retry": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) {
				in.Jobs = []Job{endedJob(fundJob, JobFailed, "")}
				in.Pool.Annotations = map[string]string{AnnotationRetry: "1"}
			}},
			want: []string{"delete p-payer-1-fund", "mount p-payer-0-0", "step Fund of 1"}},
		"the fleet does not switch to keys that cannot pay": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) {
				in.Jobs = []Job{endedJob(fundJob, JobComplete, "")}
				in.Balances[old.Address], in.Balances[fresh.Address] = Balance{Lamports: 60_000_000}, Balance{Lamports: 10_000_000}
			}},
			want: []string{"mount p-payer-0-0", "step Fund of 1"}, message: "send SOL to address-of-p-payer-1-0"},
		"the fleet switches to keys with unknown balances after their Job has funded them": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) {
				in.Jobs = []Job{endedJob(fundJob, JobComplete, "")}
				in.Balances[old.Address] = Balance{Lamports: 60_000_000}
			}},
			want: []string{"label p-payer-1-0 Active", "label p-payer-0-0 Draining", "mount p-payer-0-0", "step CutOver of 1"}},
		"the fleet switches to keys whose low balance was read before they were funded": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) {
				in.Jobs = []Job{endedJob(fundJob, JobComplete, "")}
				in.Jobs[0].Ended = now
				in.Balances[old.Address], in.Balances[fresh.Address] = Balance{Lamports: 60_000_000, At: now}, Balance{At: now}
			}},
			want: []string{"label p-payer-1-0 Active", "label p-payer-0-0 Draining", "mount p-payer-0-0", "step CutOver of 1"}},
		"the fleet does not switch to keys whose low balance was read after their Job": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) {
				in.Jobs = []Job{endedJob(fundJob, JobComplete, "")}
				in.Jobs[0].Ended = now
				at := now.Add(2 * time.Second)
				in.Balances[old.Address], in.Balances[fresh.Address] = Balance{Lamports: 60_000_000, At: at}, Balance{At: at}
			}},
			want: []string{"mount p-payer-0-0", "step Fund of 1"}, message: "send SOL to address-of-p-payer-1-0"},
		"a fleet that cannot pay switches to keys that cannot pay either": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) {
				in.Jobs = []Job{endedJob(fundJob, JobComplete, "")}
				in.Balances[old.Address], in.Balances[fresh.Address] = Balance{}, Balance{}
			}},
			want: []string{"label p-payer-1-0 Active", "label p-payer-0-0 Draining", "mount p-payer-0-0", "step CutOver of 1"}},
		"the rotation waits while the pods cannot be read": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: []Key{key(0, 0, draining), key(1, 0, active)}, change: func(in *Input) {
				in.Rollout = Rollout{}
			}},
			want: []string{"mount p-payer-1-0", "step CutOver of 1"}, message: "could not be read"},
		"a revision that is raised during a rotation waits": {
			inputSpec: inputSpec{revision: 2, count: 1, keys: []Key{key(0, 0, draining), key(1, 0, active)}},
			want:      []string{"make p-payer-1-drain", "mount p-payer-1-0", "step Drain of 1"}},
		"a paused RelayPool takes no step": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) { in.Pool.Spec.Paused = true }},
			want:      []string{"mount p-payer-0-0", "step Fund of 1"}, message: "spec.paused is true"},
		"a changed address annotation is restored": {
			inputSpec: inputSpec{count: 1, keys: []Key{{Secret: old.Secret, Address: old.Address, State: active, AnnotationOutdated: true}}},
			want:      []string{"label p-payer-0-0 Active", "mount p-payer-0-0"}},
		"a retired key with funds is reported": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: []Key{key(0, 0, retired), key(1, 0, active)}, change: func(in *Input) {
				in.Balances[old.Address] = Balance{Lamports: 1_500_000_000}
			}},
			want: []string{"mount p-payer-1-0", "step Done of 1", "problem RetiredKeyFunded"}, message: "holds 1.5 SOL"},
		"a balance that was read before the sweep is not reported": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: []Key{key(0, 0, retired), key(1, 0, active)}, change: func(in *Input) {
				in.Pool.Status.Rotation = &v1alpha1.RotationStatus{Revision: 1, Step: v1alpha1.RotationDone, Since: &metav1.Time{Time: now}}
				in.Balances[old.Address] = Balance{Lamports: 1_500_000_000, At: now.Add(-time.Second)}
			}},
			want: []string{"mount p-payer-1-0", "step Done of 1"}},
		"a retired key is swept again when a person requests it": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: []Key{key(0, 0, retired), key(1, 0, active)}, change: func(in *Input) {
				in.Balances[old.Address] = Balance{Lamports: 1_500_000_000}
				in.Pool.Annotations = map[string]string{AnnotationSweepRetired: "1"}
				in.Jobs = []Job{endedJob(runningJob(sweep, 1, []Key{key(0, 0, retired)}, []Key{key(1, 0, active)}), JobComplete, "")}
			}},
			want: []string{"delete p-payer-1-sweep", "mount p-payer-1-0", "step Done of 1", "problem RetiredKeyFunded"}},
		"a request to sweep is carried out once": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: []Key{key(0, 0, retired), key(1, 0, active)}, change: func(in *Input) {
				in.Balances[old.Address] = Balance{Lamports: 1_500_000_000}
				in.Pool.Annotations = map[string]string{AnnotationSweepRetired: "1"}
				swept := JobWanted{Step: sweep, Revision: 1}
				in.Jobs = []Job{{Name: "p-payer-1-sweep", State: JobComplete, InputsHash: inputsHash(swept, "1"), Token: "1"}}
			}},
			want: []string{"mount p-payer-1-0", "step Done of 1", "problem RetiredKeyFunded"}},
		"named Secrets are used beside generated keys": {
			inputSpec: inputSpec{count: 1, keys: []Key{old}, change: func(in *Input) { in.Refs = mine }},
			want:      []string{"mount p-payer-0-0", "mount mine"}},
		"keys that are generated beside named Secrets are active at once": {
			inputSpec: inputSpec{count: 2, change: func(in *Input) { in.Refs = mine }},
			want:      []string{"create p-payer-0-0 Active", "create p-payer-0-1 Active", "mount mine"}},
		"a rotation leaves named Secrets alone": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: []Key{key(0, 0, draining), key(1, 0, active)}, change: func(in *Input) {
				in.Refs = mine
				in.Rollout.Template, in.Rollout.Pods = []string{"mine", "p-payer-1-0"}, []string{"mine", "p-payer-1-0"}
			}},
			want: []string{"make p-payer-1-drain", "mount p-payer-1-0", "mount mine", "step Drain of 1"}},
		"the lack of a usable generated key is reported beside named Secrets": {
			inputSpec: inputSpec{count: 1, keys: []Key{key(0, 0, retired)}, change: func(in *Input) { in.Refs = mine }},
			want:      []string{"mount mine", "problem NoPayers"}},
		"a named Secret with a generated key is refused, and no Job is made": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) {
				in.Refs = []refs.Payer{{Secret: "copy", Key: "x", Address: old.Address}}
			}},
			want: []string{"mount p-payer-0-0", "step Fund of 1", "problem DuplicateKey"}, message: "spec.feePayers.secretRefs: Secret copy, key x"},
		"a signer with a generated key is refused, and no Job is made": {
			inputSpec: inputSpec{revision: 1, count: 1, keys: both, change: func(in *Input) {
				in.Pool.Spec.FeePayers.Signers = []v1alpha1.Signer{{Name: "vault", Address: fresh.Address}}
			}},
			want: []string{"mount p-payer-0-0", "step Fund of 1", "problem DuplicateKey"}, message: "spec.feePayers.signers[vault]"},
		"signers need no key in a Secret": {
			inputSpec: inputSpec{count: 0, change: func(in *Input) {
				in.Pool.Spec.FeePayers.Generate, in.Pool.Spec.FeePayers.Signers = nil, []v1alpha1.Signer{{Name: "vault", Address: "1"}}
			}}},
		"a generated key that is in a key service now is not swept": {
			inputSpec: inputSpec{count: 0, keys: []Key{old}, change: func(in *Input) {
				in.Pool.Spec.FeePayers.Generate, in.Pool.Spec.FeePayers.Signers = nil, []v1alpha1.Signer{{Name: "vault", Address: old.Address}}
				in.Balances[old.Address] = Balance{Lamports: 1_500_000_000}
				in.Pool.Annotations = map[string]string{AnnotationSweepRetired: "1"}
			}}},
		"all named Secrets are used": {
			inputSpec: inputSpec{count: 0, change: func(in *Input) {
				in.Pool.Spec.FeePayers.Generate = nil
				in.Refs = []refs.Payer{{Secret: "a", Key: "x", Address: "1"}, {Secret: "a", Key: "y", Address: "2"}}
			}},
			want: []string{"mount a", "mount a"}},
		"generated keys that named Secrets replaced are swept on request": {
			inputSpec: inputSpec{count: 0, keys: []Key{old}, change: func(in *Input) {
				in.Pool.Spec.FeePayers.Generate = nil
				in.Refs = []refs.Payer{{Secret: "a", Key: "x", Address: "1"}}
				in.Balances[old.Address] = Balance{Lamports: 1_500_000_000}
				in.Pool.Annotations = map[string]string{AnnotationSweepRetired: "1"}
			}},
			want: []string{"make p-payer-0-sweep", "mount a", "problem RetiredKeyFunded"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := Decide(test.input())
			if diff := cmp.Diff(test.want, summary(plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			messages := ""
			if plan.Rotation != nil {
				messages = plan.Rotation.Message
			}
			for _, p := range plan.Problems {
				messages += "\n" + p.Message
			}
			if !strings.Contains(messages, test.message) {
				t.Errorf("messages are %q, want %q in them", messages, test.message)
			}
		})
	}
}

func TestEventsReportNewFactsOnly(t *testing.T) {
	t.Parallel()
	in := inputSpec{revision: 1, count: 1, keys: []Key{key(0, 0, v1alpha1.PayerActive), key(1, 0, v1alpha1.PayerIncoming)}}.input()
	in.Keys.Keys[0].Created = in.Pool.CreationTimestamp.Add(-time.Second)
	in.Jobs = []Job{endedJob(runningJob(v1alpha1.RotationFund, 1, in.Keys.Keys[:1], in.Keys.Keys[1:]), JobFailed, "no answer")}
	plan := Decide(in)
	var reasons []string
	for _, e := range plan.Events {
		reasons = append(reasons, e.Reason)
	}
	want := []string{v1alpha1.EventKeyGenerated, v1alpha1.EventKeyAdopted, v1alpha1.EventRotationStep, v1alpha1.EventRotationFailed}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if !plan.Rotation.Since.Time.Equal(now) || !plan.Rotating || !plan.Failed {
		t.Errorf("the step began at %v, rotating %t, failed %t; want %v, true, true", plan.Rotation.Since, plan.Rotating, plan.Failed, now)
	}

	in.Pool.Status.FeePayers, in.Pool.Status.Rotation = plan.Payers, plan.Rotation
	in.Now = now.Add(time.Minute)
	again := Decide(in)
	if len(again.Events) > 0 {
		t.Errorf("a second pass repeats the events %v", again.Events)
	}
	if diff := cmp.Diff(plan.Rotation, again.Rotation); diff != "" {
		t.Errorf("the second pass changed the rotation's status (-first +second):\n%s", diff)
	}
}

func TestFundedRetiredKeyIsReportedOnce(t *testing.T) {
	t.Parallel()
	const funded, retiredFunded = v1alpha1.ReasonFunded, v1alpha1.ReasonRetiredKeyFunded
	for name, test := range map[string]struct {
		shown  int64 // the balance in the status
		reason string
		read   time.Time
		want   int
	}{
		"the status shows an empty key":                                        {0, funded, now.Add(time.Minute), 1},
		"the status shows the funds that were swept, and the reading is newer": {oneSOL, funded, now.Add(time.Minute), 1},
		"the status and the reading show the funds that were swept":            {oneSOL, funded, now, 0},
		"the status already reports the funds":                                 {oneSOL, retiredFunded, now.Add(time.Minute), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := key(0, 0, v1alpha1.PayerRetired)
			in := inputSpec{revision: 1, count: 1, keys: []Key{old, key(1, 0, v1alpha1.PayerActive)}}.input()
			in.Balances[old.Address] = Balance{Lamports: 50_000_000, At: test.read}
			in.Pool.Status.FeePayers = []v1alpha1.FeePayerStatus{
				{Address: "address-of-p-payer-1-0", SecretName: "p-payer-1-0", State: v1alpha1.PayerActive},
				{Address: old.Address, SecretName: old.Secret, State: v1alpha1.PayerRetired, BalanceLamports: &test.shown},
			}
			in.Pool.Status.Rotation = &v1alpha1.RotationStatus{Revision: 1, Step: v1alpha1.RotationDone, Since: &metav1.Time{Time: now}}
			in.Pool.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFeePayersFunded, Status: metav1.ConditionTrue, Reason: test.reason}}
			events := Decide(in).Events
			if len(events) != test.want || len(events) > 0 && events[0].Reason != v1alpha1.EventRetiredKeyFunded {
				t.Errorf("events are %v, want %d RetiredKeyFunded", events, test.want)
			}
		})
	}
}

// oneSOL is 1 SOL in lamports.
const oneSOL = int64(solana.LAMPORTS_PER_SOL)

func TestChangedAddressOfASecretIsReported(t *testing.T) {
	t.Parallel()
	in := inputSpec{}.input()
	in.Pool.Spec.FeePayers.Generate = nil
	in.Refs = []refs.Payer{{Secret: "a", Key: "x", Address: "new"}}
	in.Pool.Status.FeePayers = []v1alpha1.FeePayerStatus{{Address: "former", SecretName: "a", State: v1alpha1.PayerActive}}
	events := Decide(in).Events
	if len(events) != 1 || events[0].Reason != v1alpha1.EventKeyChanged || !strings.Contains(events[0].Note, "address new; before, it had the address former") {
		t.Errorf("events are %v, want one KeyChanged", events)
	}
}

func TestPayersInTheStatusAreLimited(t *testing.T) {
	t.Parallel()
	s := inputSpec{revision: 5, count: 32}
	for r := range int32(6) {
		state := v1alpha1.PayerRetired
		if r == 5 {
			state = v1alpha1.PayerActive
		}
		for i := range int32(32) {
			s.keys = append(s.keys, key(r, i, state))
		}
	}
	plan := Decide(s.input())
	if len(plan.Payers) != maxPayers || plan.Payers[31].State != v1alpha1.PayerActive || len(plan.Mounted) != 32 {
		t.Errorf("%d payers, %d mounted; want %d payers with the active ones first, and 32 mounted", len(plan.Payers), len(plan.Mounted), maxPayers)
	}
}

func TestFundedKeyEvents(t *testing.T) {
	t.Parallel()
	held := int64(20_000_000)
	payers := []v1alpha1.FeePayerStatus{
		{Address: "A", SecretName: "a", BalanceLamports: &held}, {Address: "B", SecretName: "b"}, {Address: "C", SecretName: "c", BalanceLamports: &held},
		{Address: "D", SecretName: "a", BalanceLamports: &held},
	}
	status := &v1alpha1.RelayPoolStatus{FeePayers: payers}
	got := FundedKeyEvents(status, map[string]Balance{"A": {Lamports: 1}, "C": {}})
	warning := func(secret, note string) Event {
		return Event{
			Type: corev1.EventTypeWarning, Reason: v1alpha1.EventFundedKeyLeft, Action: "Delete", Secret: secret,
			Note: "Secret " + secret + " stays, and a RelayPool of the same name uses it again if its keys were generated: " + note,
		}
	}
	want := []Event{warning("a", "A holds 0.000000001 SOL; D held 0.02 SOL"), warning("b", "B has an unknown balance")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	signers := &v1alpha1.RelayPoolStatus{FeePayers: []v1alpha1.FeePayerStatus{{Address: "A", SignerName: "aws"}, {Address: "B", SignerName: "vault"}}}
	got = FundedKeyEvents(signers, map[string]Balance{"A": {Lamports: 1}, "B": {Lamports: 2}})
	if len(got) != 1 || got[0].Note != "Keys in key services stay there: A holds 0.000000001 SOL; B holds 0.000000002 SOL" {
		t.Errorf("events about signers are %v, want one", got)
	}
	for step, want := range map[v1alpha1.RotationStep][]Event{
		"":                        nil,
		v1alpha1.RotationGenerate: nil,
		v1alpha1.RotationFund:     {warning("c", "C may have been funded by a rotation")},
		v1alpha1.RotationSweep:    {warning("c", "C may have been funded by a rotation")},
		v1alpha1.RotationDone:     nil,
	} {
		status := &v1alpha1.RelayPoolStatus{FeePayers: slices.Clone(payers[2:3])}
		if step != "" {
			status.Rotation = &v1alpha1.RotationStatus{Revision: 1, Step: step}
		}
		status.FeePayers[0].State = v1alpha1.PayerIncoming
		if diff := cmp.Diff(want, FundedKeyEvents(status, map[string]Balance{"C": {}})); diff != "" {
			t.Errorf("in the step %q, events about a new payer with a balance of 0 (-want +got):\n%s", step, diff)
		}
		status.FeePayers[0].State = v1alpha1.PayerDraining
		if got := FundedKeyEvents(status, map[string]Balance{"C": {}}); got != nil {
			t.Errorf("in the step %q, events about an old payer with a balance of 0 are %v, want none", step, got)
		}
	}
	many := make([]v1alpha1.FeePayerStatus, 128)
	for i := range many {
		many[i] = v1alpha1.FeePayerStatus{Address: strings.Repeat("A", 44), SecretName: "s"}
	}
	if got := FundedKeyEvents(&v1alpha1.RelayPoolStatus{FeePayers: many}, nil); len(got) != 1 || len(got[0].Note) > maxNote {
		t.Errorf("there are %d events, want one with a note that the API server accepts", len(got))
	}
}

func TestRolloutOf(t *testing.T) {
	t.Parallel()
	spec := func(secrets ...string) corev1.PodSpec {
		source := &corev1.ProjectedVolumeSource{}
		for _, s := range secrets[1:] {
			source.Sources = append(source.Sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: s}}})
		}
		return corev1.PodSpec{Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secrets[0]}}},
			{VolumeSource: corev1.VolumeSource{Projected: source}},
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}}
	}
	deployment := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: spec("a", "b")}}}
	deployment.Generation = 2
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2}
	pods := []corev1.Pod{{Spec: spec("a", "c")}, {Spec: spec("d"), Status: corev1.PodStatus{Phase: corev1.PodFailed}}}
	pods[0].DeletionTimestamp = &metav1.Time{Time: now}
	want := Rollout{Known: true, Complete: true, Template: []string{"a", "b"}, Pods: []string{"a", "c"}}
	if diff := cmp.Diff(want, RolloutOf(deployment, pods)); diff != "" {
		t.Errorf("rollout (-want +got):\n%s", diff)
	}
	for name, change := range map[string]func(*appsv1.Deployment){
		"the controller has not observed the newest template": func(d *appsv1.Deployment) { d.Generation = 3 },
		"a replica of the old template is left":               func(d *appsv1.Deployment) { d.Status.Replicas = 3 },
	} {
		d := deployment.DeepCopy()
		change(d)
		if RolloutOf(d, nil).Complete {
			t.Errorf("the rollout is complete although %s", name)
		}
	}
	if r := RolloutOf(nil, nil); !r.Known || !r.Complete || r.Template != nil {
		t.Errorf("without a Deployment the rollout is %+v, want known and complete", r)
	}
}

func TestJobOf(t *testing.T) {
	t.Parallel()
	pool := (&world{count: 1}).pool()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", OwnerReferences: []metav1.OwnerReference{
		*metav1.NewControllerRef(pool, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind)),
	}}}
	if got := JobOf(pool, job, "failed"); got.State != JobRunning || got.Foreign || got.Message != "failed" {
		t.Errorf("a Job without conditions is %+v, want it running and not foreign", got)
	}
	for condition, want := range map[batchv1.JobConditionType]JobState{
		batchv1.JobComplete: JobComplete, batchv1.JobFailed: JobFailed, batchv1.JobSuspended: JobRunning, batchv1.JobFailureTarget: JobRunning,
	} {
		job.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: now}}}
		got := JobOf(pool, job, "")
		if got.State != want {
			t.Errorf("a Job with the condition %s has the state %s, want %s", condition, got.State, want)
		}
		if ended := want != JobRunning; got.Ended.Equal(now) != ended {
			t.Errorf("a Job with the condition %s ended at %s, want the condition's time only if it ended", condition, got.Ended)
		}
	}
	pool.UID = "another"
	if !JobOf(pool, job, "").Foreign {
		t.Error("a Job of an earlier RelayPool of the same name is not foreign")
	}
}

func TestNumbersOfSecretNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"p-payer-0-0": true, "p-payer-12-3": true, "p-payer-01-0": false, "p-payer-1": false, "p-payer--1-0": false,
		"p-payer-1-sweep": false, "q-payer-0-0": false, "p-payer-1-1-1": false,
	} {
		if _, _, ok := numbersOf("p", name); ok != want {
			t.Errorf("%s is a key's name: %t, want %t", name, ok, want)
		}
	}
}
