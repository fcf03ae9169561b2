package pool_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// The operator takes over objects that the operator of an earlier commit made. The test
// starts an API server with the unchanged etcd data of that time, and applies the present
// resource definitions, as an upgrade does. Since c4a1482 some fields have other names, and
// pods a volume more. The changelog tells users to rename the fields in the same step, and
// that pods are replaced. An upgrade from 59c74b94 replaces no pods.
//
// testdata/upgrade/make.sh <commit> makes such data.
func TestUpgradeFromEarlierCommits(t *testing.T) {
	t.Parallel()
	data, err := filepath.Glob("testdata/upgrade/*.tar.gz")
	if err != nil || len(data) == 0 {
		t.Fatalf("found no snapshots to upgrade from, error %v", err)
	}
	for _, file := range data {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".tar.gz"), func(t *testing.T) {
			t.Parallel()
			testUpgrade(t, file)
		})
	}
}

func testUpgrade(t *testing.T, data string) {
	t.Helper()
	s := restore(t, data)
	// Only the earlier operator sets these fields. In the fleet fixed the fields are
	// outside the pod template, so its pods stay if the template is the same. In the fleet
	// scaled the field is inside, so its pods are replaced once.
	s.setField(t, "fixed", func(d *appsv1ac.DeploymentApplyConfiguration) {
		d.WithAnnotations(map[string]string{"relaypool.dev/of-old": "yes"}).Spec.WithProgressDeadlineSeconds(4321)
	})
	s.setField(t, "scaled", func(d *appsv1ac.DeploymentApplyConfiguration) {
		d.Spec.Template.Spec.Containers[0].WithEnv(corev1ac.EnvVar().WithName("OF_OLD").WithValue("yes"))
	})
	s.awaitRollout(t, "scaled")
	fixed, scaled := s.fleet(t, "fixed"), s.fleet(t, "scaled")
	secrets, before := keySecrets(t, s.Stand), versions(t, s.Stand)
	if len(fixed.pods) != 3 || len(scaled.pods) != 2 || len(secrets) != 3 {
		t.Fatalf("there are %d and %d pods and %d keys: want 3, 2 and 3", len(fixed.pods), len(scaled.pods), len(secrets))
	}

	var traffic pooltest.Traffic
	pooltest.StartOperator(t, s.Config, pooltest.OperatorOptions{
		Namespaces: []string{s.Namespace}, Chain: s.chainClient(t), Traffic: &traffic, Backlog: constantBacklog{pool.Backlog{Due: 7}},
	})
	if s.first {
		s.checkNotChangedYet(t, "fixed", fixed)
		s.checkNotChangedYet(t, "scaled", scaled)
		s.renameFields(t, "fixed")
		s.renameFields(t, "scaled")
	}
	pooltest.Eventually(t, "fields that only the old operator set are removed", func() error {
		var a, b appsv1.Deployment
		s.Get(t, "fixed", &a)
		s.Get(t, "scaled", &b)
		if a.Annotations["relaypool.dev/of-old"] != "" || *a.Spec.ProgressDeadlineSeconds == 4321 {
			return errors.New("a field outside the pod template is still set")
		}
		if slices.ContainsFunc(b.Spec.Template.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == "OF_OLD" }) {
			return errors.New("a field of the pod template is still set")
		}
		return nil
	})
	s.awaitRollout(t, "scaled")
	s.awaitRollout(t, "fixed")
	s.Await(t, "fixed", v1alpha1.ConditionReady, "True/Ready")
	s.Await(t, "scaled", v1alpha1.ConditionAvailable, "True/Available")
	s.awaitNoWrites(t, &traffic)
	s.checkFleets(t, fixed, scaled)
	checkKeysKept(t, secrets, keySecrets(t, s.Stand), 3)
	s.checkUnwritten(t, before)
}

// legacyStand is a stand with the data of an earlier operator.
type legacyStand struct {
	*pooltest.Stand

	first bool // whether the data is of c4a1482
}

// restore starts an API server with the data of an earlier one. It also starts the
// controllers and the kubelet for its fleets.
func restore(t *testing.T, data string) legacyStand {
	t.Helper()
	etcd := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", data, "--no-same-owner", "-C", etcd).CombinedOutput(); err != nil {
		t.Fatalf("unpack %s: %v\n%s", data, err, out)
	}
	server := apiservertest.Start(t, apiserver.Options{Controllers: pooltest.Controllers(), Data: etcd})
	config, err := server.Config()
	if err != nil {
		t.Fatal(err)
	}
	s := legacyStand{pooltest.NewStand(t, config), filepath.Base(data) == "c4a1482.tar.gz"}
	var snapshot corev1.ConfigMap
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "snapshot"}, &snapshot); err != nil {
		t.Fatal(err)
	}
	s.Namespace = snapshot.Data["namespace"]
	if err := s.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fixed", "scaled"} {
		s.Fund(t, name, 2_000_000_000)
	}
	pooltest.StartKubelet(t, s.Config, s.Namespace, pooltest.KubeletOptions{})
	return s
}

// chainClient returns a client that sends every request to the stand's chain, because the
// specs have the address of the earlier chain.
func (s legacyStand) chainClient(t *testing.T) *http.Client {
	t.Helper()
	target, err := url.Parse(s.RPC)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, target.Host)
	}}}
}

// setField applies another field of a Deployment, as if the earlier operator had set it.
func (s legacyStand) setField(t *testing.T, name string, change func(*appsv1ac.DeploymentApplyConfiguration)) {
	t.Helper()
	var d appsv1.Deployment
	s.Get(t, name, &d)
	config, err := appsv1ac.ExtractDeployment(&d, apply.FieldOwner)
	if err != nil {
		t.Fatal(err)
	}
	change(config)
	if err := s.Client.Apply(t.Context(), config, client.FieldOwner(apply.FieldOwner)); err != nil {
		t.Fatal(err)
	}
}

// checkNotChangedYet waits until the operator has found that the stored RelayPool lacks the
// renamed fields, and checks that the fleet is unchanged.
func (s legacyStand) checkNotChangedYet(t *testing.T, name string, was fleetState) {
	t.Helper()
	s.Await(t, name, v1alpha1.ConditionSecretsResolved, "Unknown/InternalError")
	is := s.fleet(t, name)
	if is.deployment.Generation != was.deployment.Generation || !maps.Equal(is.pods, was.pods) {
		t.Errorf("the fleet %s was changed before its manifest was changed", name)
	}
}

// renameFields applies the manifest of the snapshot with the present names of fields.
// Fields that kept their names are still stored.
func (s legacyStand) renameFields(t *testing.T, name string) {
	t.Helper()
	manifest := s.Pool(name).Spec
	pooltest.Change(t, s.Stand, name, new(v1alpha1.RelayPool), func(p *v1alpha1.RelayPool) {
		p.Spec.Database, p.Spec.Pool = manifest.Database, manifest.Pool
		p.Spec.Solana.Commitment, p.Spec.Template.LogLevel = "", "" // the defaults
	})
}

func (s legacyStand) awaitRollout(t *testing.T, name string) {
	t.Helper()
	pooltest.Eventually(t, "the rollout of "+name+" is complete", func() error {
		var d appsv1.Deployment
		s.Get(t, name, &d)
		want := *d.Spec.Replicas
		if is := &d.Status; is.ObservedGeneration != d.Generation || is.UpdatedReplicas != want || is.Replicas != want || is.AvailableReplicas != want {
			return fmt.Errorf("want %d replicas; the status is %+v", want, d.Status)
		}
		if pods := s.fleet(t, name).pods; len(pods) != int(want) {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		return nil
	})
}

// fleetState is the state of a fleet that must survive an upgrade.
type fleetState struct {
	deployment appsv1.Deployment
	pods       map[types.UID]bool
	revision   string // the number of the rollout
}

func (s legacyStand) fleet(t *testing.T, name string) fleetState {
	t.Helper()
	is := fleetState{pods: map[types.UID]bool{}}
	s.Get(t, name, &is.deployment)
	var pods corev1.PodList
	if err := s.Client.List(t.Context(), &pods, client.InNamespace(s.Namespace), client.MatchingLabels(build.Selector(name))); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		is.pods[pods.Items[i].UID] = true
	}
	is.revision = is.deployment.Annotations["deployment.kubernetes.io/revision"]
	return is
}

// checkFleets compares the fleets with their earlier state.
func (s legacyStand) checkFleets(t *testing.T, fixed, scaled fleetState) {
	t.Helper()
	is, want, revision := s.fleet(t, "fixed"), fixed.deployment.Spec.Template.DeepCopy(), "1"
	if s.first {
		addTemporaryFiles(want)
		revision = "2"
	}
	if diff := cmp.Diff(want, &is.deployment.Spec.Template); diff != "" {
		t.Errorf("the pod template of the fleet fixed is not what the changelog tells users to expect; pods are replaced when it changes (-want +got):\n%s", diff)
	}
	if fixed.revision != "1" || is.revision != revision {
		t.Errorf("the fleet fixed is at rollout %s, before at %s: want %s after 1", is.revision, fixed.revision, revision)
	}
	if !s.first && !maps.Equal(is.pods, fixed.pods) {
		t.Error("pods of the fleet fixed were replaced")
	}
	if is := s.fleet(t, "scaled"); scaled.revision != "2" || is.revision != "3" {
		t.Errorf("the fleet scaled is at rollout %s, before at %s: want 3 after 2", is.revision, scaled.revision)
	} else if *is.deployment.Spec.Replicas != *scaled.deployment.Spec.Replicas {
		t.Errorf("the fleet scaled has %d replicas: want %d as before", *is.deployment.Spec.Replicas, *scaled.deployment.Spec.Replicas)
	}
	for _, name := range []string{"fixed", "scaled"} {
		status := s.Status(t, name)
		for _, kind := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionReconciling} {
			if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
				t.Errorf("%s has the condition %s, want none: %s", name, kind, c.Message)
			}
		}
		for _, kind := range []string{
			v1alpha1.ConditionAccepted, v1alpha1.ConditionSecretsResolved, v1alpha1.ConditionPoolInitialised,
			v1alpha1.ConditionFeePayersFunded, v1alpha1.ConditionAvailable,
		} {
			if c := meta.FindStatusCondition(status.Conditions, kind); c == nil || c.Status != metav1.ConditionTrue {
				t.Errorf("%s: the condition %s is %+v: want the status True", name, kind, c)
			}
		}
		if status.InitialisedAt == nil || len(status.FeePayers) == 0 || status.FeePayers[0].State != v1alpha1.PayerActive {
			t.Errorf("%s: the status has lost InitialisedAt or the payers: %+v", name, status)
		}
	}
}

// addTemporaryFiles changes a pod template of c4a1482 as the present operator does.
func addTemporaryFiles(template *corev1.PodTemplateSpec) {
	const volume, folder = "temporary-files", "/var/cache/relaypool"
	template.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"] = volume
	spec := &template.Spec
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: new(corev1.EmptyDirVolumeSource)}})
	relay := &spec.Containers[0]
	relay.Env = slices.Insert(relay.Env, 2, corev1.EnvVar{Name: "TMPDIR", Value: folder})
	relay.VolumeMounts = slices.Insert(relay.VolumeMounts, 0, corev1.VolumeMount{Name: volume, MountPath: folder})
}

// awaitNoWrites waits until several passes in a row wrote nothing.
func (s legacyStand) awaitNoWrites(t *testing.T, traffic *pooltest.Traffic) {
	t.Helper()
	(&storm{Stand: s.Stand}).awaitNoWrites(t, traffic)
}

// checkUnwritten checks that the operator did not write objects that are equal in both
// versions.
func (s legacyStand) checkUnwritten(t *testing.T, before map[string]string) {
	t.Helper()
	after, compared := versions(t, s.Stand), 0
	for name, version := range before {
		kind, _, _ := strings.Cut(name, " ")
		switch kind {
		case "*v1.Deployment", "*v1.ReplicaSet", "*v1.Pod", "*v1alpha1.RelayPool":
			continue
		case "*v2.HorizontalPodAutoscaler":
			if s.first { // the metric had another name
				continue
			}
		}
		if after[name] != version {
			t.Errorf("%s was written", name)
		}
		compared++
	}
	if compared < 10 {
		t.Errorf("%d objects were compared: want at least 10, or the test checks too little", compared)
	}
}
