package apiservertest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// abandonVariable makes the test binary start a server and wait until it is killed.
const abandonVariable = "RELAYPOOL_TEST_ABANDON"

func TestMain(m *testing.M) {
	if os.Getenv(abandonVariable) != "" {
		abandon()
	}
	apiservertest.Main(m)
}

// abandon starts a server, prints its folder and never stops it.
func abandon() {
	server, err := apiserver.Start(context.Background(), apiserver.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(server.Dir())
	select {}
}

// A test that is killed, for example after its timeout, cannot stop its server.
func TestServerOfAKilledProcessIsStoppedAndRemoved(t *testing.T) {
	t.Parallel()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), executable)
	cmd.Env = append(os.Environ(), abandonVariable+"=1")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(errors.Join(err, cmd.Wait()))
	}
	dir := strings.TrimSpace(line)
	pids := serverPIDs(t, dir)
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Errorf("signal process %d: error %v, want that it runs", pid, err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // reports the kill
	eventually(t, func(context.Context) error {
		for _, pid := range pids {
			if err := syscall.Kill(pid, 0); err == nil {
				return fmt.Errorf("process %d still runs", pid)
			}
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("stat the folder: error %w, want that it does not exist", err)
		}
		return nil
	})
}

// serverPIDs returns the process ids of a server's etcd and API server.
func serverPIDs(t *testing.T, dir string) []int {
	t.Helper()
	var pids []int
	for _, program := range []string{"etcd", "kube-apiserver"} {
		text, err := os.ReadFile(filepath.Join(dir, program+".pid"))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	cs, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// eventually calls done until it returns no error, or fails the test with the last error.
func eventually(t *testing.T, done func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := done(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after a minute: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestRBACIsEnforced(t *testing.T) {
	t.Parallel()
	namespace := apiservertest.Namespace(t)
	admin := clientset(t, apiservertest.Config(t))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "operator"}}
	if _, err := admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	byCertificate, err := apiservertest.Server(t).User("alice", "developers")
	if err != nil {
		t.Fatal(err)
	}
	byToken, err := apiservertest.Server(t).ServiceAccount(t.Context(), namespace, "operator")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		config  *rest.Config
		subject rbacv1.Subject
	}{
		"a user with a certificate, in a group":    {byCertificate, rbacv1.Subject{Kind: "Group", Name: "developers", APIGroup: rbacv1.GroupName}},
		"a service account with a requested token": {byToken, rbacv1.Subject{Kind: "ServiceAccount", Name: "operator", Namespace: namespace}},
	}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	}
	if _, err := admin.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			cs := clientset(t, tt.config)
			list := func(ctx context.Context) error {
				_, err := cs.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
				return err
			}
			if err := list(t.Context()); !apierrors.IsForbidden(err) {
				t.Fatalf("list without a role binding: error %v, want forbidden", err)
			}
			binding := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "reader-"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
				Subjects:   []rbacv1.Subject{tt.subject},
			}
			if _, err := admin.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, list)
			if _, err := cs.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("list Secrets, which are not in the role: error %v, want forbidden", err)
			}
		})
	}
}

func TestTokenOfAMissingServiceAccountIsAnError(t *testing.T) {
	t.Parallel()
	_, err := apiservertest.Server(t).ServiceAccount(t.Context(), apiservertest.Namespace(t), "nobody")
	if !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want not found", err)
	}
}

func TestNamespaceAcceptsOnlyRestrictedPods(t *testing.T) {
	t.Parallel()
	namespace := apiservertest.Namespace(t)
	pods := clientset(t, apiservertest.Config(t)).CoreV1().Pods(namespace)
	if _, err := pods.Create(t.Context(), restrictedPod("restricted"), metav1.CreateOptions{}); err != nil {
		t.Errorf("create a restricted pod: %v", err)
	}
	root := restrictedPod("root")
	root.Spec.SecurityContext.RunAsNonRoot = new(false)
	_, err := pods.Create(t.Context(), root, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "runAsNonRoot") {
		t.Errorf("create a pod that may run as root: error %v, want forbidden by PodSecurity", err)
	}
}

func restrictedPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: restrictedSpec()}
}

func restrictedSpec() corev1.PodSpec {
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   new(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "main", Image: "example/main:1",
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}

func TestInstallServesAndReplacesACRD(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Group: "monitoring.example", Version: "v1", Kind: "PodMonitor"}
	crd := apiservertest.ForeignCRD(kind, "podmonitors")
	namespace := apiservertest.Namespace(t)
	create := func() error {
		cl, err := client.New(apiservertest.Config(t), client.Options{FieldValidation: "Strict"})
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"anything": []any{int64(1)}}}}
		object.SetGroupVersionKind(kind)
		object.SetNamespace(namespace)
		object.SetName("a")
		return cl.Create(t.Context(), object)
	}
	if err := create(); !meta.IsNoMatchError(err) {
		t.Fatalf("create an object before its CRD: error %v, want no match", err)
	}
	for range 2 { // the second call replaces the CRD
		if err := apiservertest.Server(t).Install(crd); err != nil {
			t.Fatal(err)
		}
	}
	if err := create(); err != nil {
		t.Fatalf("create an object after its CRD: %v", err)
	}
}

func TestControllersMakeAndDeleteObjects(t *testing.T) {
	t.Parallel()
	server := apiservertest.Start(t, apiserver.Options{Controllers: []string{
		"deployment-controller", "replicaset-controller", "job-controller", "garbage-collector-controller", "namespace-controller",
	}})
	config, err := server.Config()
	if err != nil {
		t.Fatal(err)
	}
	cs := clientset(t, config)
	namespace := apiservertest.NamespaceOn(t, config)
	labels := map[string]string{"app": "a"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: restrictedSpec()},
		},
	}
	if _, err := cs.AppsV1().Deployments(namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: restrictedSpec()}},
	}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if _, err := cs.BatchV1().Jobs(namespace).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error { return havePods(ctx, cs, namespace, 3) })
	if err := cs.AppsV1().Deployments(namespace).Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error { return havePods(ctx, cs, namespace, 1) })
	if err := cs.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if _, err := cs.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the namespace is still there"), err)
		}
		return nil
	})
}

func havePods(ctx context.Context, cs *kubernetes.Clientset, namespace string, want int) error {
	pods, err := cs.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err == nil && len(pods.Items) != want {
		err = fmt.Errorf("the namespace has %d pods, want %d", len(pods.Items), want)
	}
	return err
}

func TestStopDeletesTheServersFolder(t *testing.T) {
	t.Parallel()
	server, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := server.Dir()
	for range 2 { // the second call does nothing
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat the folder: error %v, want that it does not exist", err)
	}
}
