package pooltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/settings"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/postgres"
	"github.com/relaypool/relaypool/relay/contract"
)

// exitKilled is a process' exit code after SIGKILL, as a container runtime
// reports it.
const exitKilled = 137

// BuildRelay builds the relay for a test and returns the program's file.
func BuildRelay(t testing.TB) string {
	t.Helper()
	return buildProgram(t, "./relay/cmd/relay")
}

// BuildOperator builds the operator for a test and returns the program's file.
func BuildOperator(t testing.TB) string {
	t.Helper()
	return buildProgram(t, "./controllers/cmd/operator")
}

func buildProgram(t testing.TB, source string) string {
	t.Helper()
	root, err := apiserver.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	_ = os.Getenv("RELAYPOOL_SOURCES") // cached test results are valid until this changes
	file := filepath.Join(t.TempDir(), filepath.Base(source))
	command := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", file, source)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", source, err, output)
	}
	return file
}

// Database starts a Postgres with the relay's schema, for one test, and returns
// its URL.
func Database(t testing.TB, relay string) string {
	t.Helper()
	return Postgres(t, relay).URL(Migrated)
}

// Migrated is the name of the database with the relay's schema, on a server that Postgres
// started.
const Migrated = "postgres"

// Postgres starts a server with the relay's schema, for one test.
func Postgres(t testing.TB, relay string) *postgres.Server {
	t.Helper()
	server, stop, err := postgres.StartTemp(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("stop Postgres: %v", err)
		}
	})
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte(server.URL(Migrated)), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), relay, "migrate")
	command.Env = append(os.Environ(), contract.EnvDatabaseURLFile+"="+file)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("migrate the database: %v\n%s", err, output)
	}
	return server
}

// Program is an operator in a process of its own.
type Program struct {
	command *exec.Cmd
	log     string
}

// StartProgram runs the operator's program for one namespace until it is killed
// or the test ends.
func StartProgram(t testing.TB, operator string, config *rest.Config, namespace string) *Program {
	t.Helper()
	folder := t.TempDir()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	const name = "pooltest"
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, kubeconfig); err != nil {
		t.Fatalf("write the operator's kubeconfig: %v", err)
	}
	p := &Program{log: filepath.Join(folder, "log")}
	output, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close() //nolint:errcheck // the process has its own descriptor
	p.command = exec.CommandContext(context.WithoutCancel(t.Context()), operator, "run",
		"--kubeconfig="+kubeconfig, "--relay-image="+Image, "--namespaces="+namespace, "--leader-elect=false",
		"--metrics-listen="+settings.None, "--health-listen="+settings.None, "--refs-interval=1s", "--log-format=text")
	p.command.Env = []string{"PATH=" + os.Getenv("PATH")}
	p.command.Stdout, p.command.Stderr = output, output
	if err := p.command.Start(); err != nil {
		t.Fatalf("start the operator: %v", err)
	}
	t.Cleanup(func() { p.Kill(t) })
	return p
}

// Kill kills the process with SIGKILL. If the process has already ended by itself, the test
// fails.
func (p *Program) Kill(t testing.TB) {
	t.Helper()
	if p.command == nil {
		return
	}
	_ = p.command.Process.Kill() // an error means that the process has ended, which is reported below
	err := p.command.Wait()
	if code := p.command.ProcessState.ExitCode(); code >= 0 {
		output, readErr := os.ReadFile(p.log)
		t.Errorf("the operator had ended with code %d before it was killed: %v\n%s", code, errors.Join(err, readErr), output)
	}
	p.command = nil
}

// Processes runs the pods of rotation Jobs as processes of the relay, each in a folder of
// its own. A process has the arguments, the environment and the files of its pod.
type Processes struct {
	relay     string
	folder    string
	client    kubernetes.Interface
	namespace string

	mutex   sync.Mutex
	running map[types.UID]podProcess
	runs    int
}

// podProcess is the process of a pod.
type podProcess struct {
	job     string
	process *os.Process
}

// Processes makes a runner for KubeletOptions.Job.
func (s *Stand) Processes(t testing.TB, relay string) *Processes {
	t.Helper()
	c, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &Processes{relay: relay, folder: t.TempDir(), client: c, namespace: s.Namespace, running: map[types.UID]podProcess{}}
}

// Run runs one pod to its end. If the pod cannot be run, the result has the error as its
// message.
func (p *Processes) Run(ctx context.Context, pod *corev1.Pod) Ended {
	ended, err := p.run(ctx, pod)
	if err != nil {
		return Ended{ExitCode: 128, Message: "pooltest: " + err.Error()}
	}
	return ended
}

func (p *Processes) run(ctx context.Context, pod *corev1.Pod) (Ended, error) {
	root := filepath.Join(p.folder, string(pod.UID))
	if err := p.mount(ctx, pod, root); err != nil {
		return Ended{}, err
	}
	log := filepath.Join(root, "termination-log")
	paths := strings.NewReplacer(contract.Root, root, contract.TerminationLog, log)
	container := &pod.Spec.Containers[0]
	var args []string
	for _, a := range container.Args {
		args = append(args, paths.Replace(a))
	}
	command := exec.CommandContext(ctx, p.relay, args...)
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	for _, e := range container.Env {
		command.Env = append(command.Env, e.Name+"="+paths.Replace(e.Value))
	}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := p.wait(command, pod)
	message, readErr := os.ReadFile(log)
	if readErr != nil || len(message) == 0 {
		message = output.Bytes() // as with terminationMessagePolicy FallbackToLogsOnError
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return Ended{Message: string(message)}, nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return Ended{ExitCode: int32(exit.ExitCode()), Message: lastBytes(message)}, nil //nolint:gosec // an exit code has eight bits
	case errors.As(err, &exit):
		return Ended{ExitCode: exitKilled}, nil
	default:
		return Ended{}, fmt.Errorf("run the relay: %w", err)
	}
}

// wait starts a pod's process and waits for its end.
func (p *Processes) wait(command *exec.Cmd, pod *corev1.Pod) error {
	if err := command.Start(); err != nil {
		return err
	}
	p.mutex.Lock()
	p.running[pod.UID] = podProcess{pod.Labels[batchv1.JobNameLabel], command.Process}
	p.runs++
	p.mutex.Unlock()
	err := command.Wait()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.running, pod.UID)
	return err
}

// Runs returns how many processes were started.
func (p *Processes) Runs() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.runs
}

// Running reports whether a process of that Job runs.
func (p *Processes) Running(job string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, r := range p.running {
		if r.job == job {
			return true
		}
	}
	return false
}

// Kill kills the processes of that Job with SIGKILL, and reports whether there was
// one.
func (p *Processes) Kill(job string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	killed := false
	for _, r := range p.running {
		killed = r.job == job && r.process.Kill() == nil || killed
	}
	return killed
}

// lastBytes returns the part of a termination message that Kubernetes keeps.
func lastBytes(message []byte) string {
	const most = 2048
	return string(message[max(0, len(message)-most):])
}

// mount writes to root the files that the container mounts below contract.Root.
func (p *Processes) mount(ctx context.Context, pod *corev1.Pod, root string) error {
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		inside, ok := strings.CutPrefix(m.MountPath, contract.Root)
		if !ok {
			continue
		}
		for i := range pod.Spec.Volumes {
			if v := &pod.Spec.Volumes[i]; v.Name == m.Name && v.Projected != nil {
				if err := p.project(ctx, v.Projected.Sources, filepath.Join(root, inside)); err != nil {
					return err
				}
			}
		}
	}
	return os.MkdirAll(root, 0o700)
}

func (p *Processes) project(ctx context.Context, sources []corev1.VolumeProjection, folder string) error {
	for _, source := range sources {
		var data map[string][]byte
		var items []corev1.KeyToPath
		switch {
		case source.Secret != nil:
			secret, err := p.client.CoreV1().Secrets(p.namespace).Get(ctx, source.Secret.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			data, items = secret.Data, source.Secret.Items
		case source.ConfigMap != nil:
			file, err := p.client.CoreV1().ConfigMaps(p.namespace).Get(ctx, source.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			data, items = map[string][]byte{}, source.ConfigMap.Items
			for name, content := range file.Data {
				data[name] = []byte(content)
			}
		}
		for _, item := range items {
			file := filepath.Join(folder, item.Path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, data[item.Key], 0o600)); err != nil {
				return err
			}
		}
	}
	return nil
}

// IsRotation distinguishes pods of rotation Jobs from those of fleets.
func IsRotation(pod *corev1.Pod) bool {
	return pod.Labels[build.LabelComponent] == build.ComponentRotation
}
