package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/hack/chart/release"
)

// testCommand returns the command line of the pod that helm test runs.
func testCommand(t *testing.T, manifests string) []string {
	t.Helper()
	hooks, err := release.Objects([]byte(manifests))
	must(t, err)
	for _, hook := range hooks {
		if hook.GetKind() == "Pod" {
			pod := &corev1.Pod{}
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(hook.Object, pod, true))
			return pod.Spec.Containers[0].Args
		}
	}
	t.Fatal("the release has no pod for helm test")
	return nil
}

// The program of helm test's pod, with the operator's rights and no others, tells an operator
// that leads from one that does not.
func TestHelmTestChecksTheOperator(t *testing.T) {
	t.Parallel()
	operator := filepath.Join(t.TempDir(), "operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", operator, "./controllers/cmd/operator")
	build.Dir = "../../.."
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, output)
	}
	c, helm, server := clusterWithServer(t)
	createNamespace(t, c, "team-a")
	rel, err := helm.Install(load(t, currentChart), parsed(t, "namespaces: [team-a]\nleaderElection: {leaseName: lead}"))
	must(t, err)
	var manifests []string
	for _, hook := range rel.Hooks {
		manifests = append(manifests, hook.Manifest)
	}
	account, err := server.ServiceAccount(t.Context(), release.Namespace, "relaypool-operator")
	must(t, err)
	run := func(timeout string) (string, error) {
		check := exec.CommandContext(t.Context(), operator, append(testCommand(t, strings.Join(manifests, "\n---\n")), "--timeout="+timeout)...)
		check.Env = append(os.Environ(), "RELAYPOOL_KUBECONFIG="+kubeconfig(t, account))
		output, err := check.CombinedOutput()
		return string(output), err
	}
	if output, err := run("2s"); err == nil || !strings.Contains(output, "get the Lease relaypool-system/lead") || !strings.Contains(output, "not found") {
		t.Errorf("without an operator: got error %v and output %q, want that there is no Lease", err, output)
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: release.Namespace, Name: "lead"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("operator-0")},
	}
	must(t, c.Create(t.Context(), lease))
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		var err error
		for {
			select {
			case <-stop:
				stopped <- err
				return
			case <-time.After(100 * time.Millisecond):
				before := lease.DeepCopy()
				lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
				err = c.Patch(t.Context(), lease, client.MergeFrom(before))
			}
		}
	}()
	output, err := run("1m")
	close(stop)
	must(t, <-stopped)
	if err != nil || output != "the operator works\n" {
		t.Errorf("with an operator: got error %v and output %q, want that it works", err, output)
	}
}
