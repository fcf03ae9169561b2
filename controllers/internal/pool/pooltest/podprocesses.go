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

	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/relay/contract"
)

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
func (p *Processes) Run(ctx context.Context, pod *corev1.Pod) Exit {
	ended, err := p.run(ctx, pod)
	if err != nil {
		return Exit{ExitCode: 128, Message: "pooltest: " + err.Error()}
	}
	return ended
}

func (p *Processes) run(ctx context.Context, pod *corev1.Pod) (Exit, error) {
	root := filepath.Join(p.folder, string(pod.UID))
	if err := p.mount(ctx, pod, root); err != nil {
		return Exit{}, err
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
		return Exit{Message: string(message)}, nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return Exit{ExitCode: int32(exit.ExitCode()), Message: lastBytes(message)}, nil //nolint:gosec // an exit code has eight bits
	case errors.As(err, &exit):
		return Exit{ExitCode: exitKilled}, nil
	default:
		return Exit{}, fmt.Errorf("run the relay: %w", err)
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

// mount copies the files that the container mounts below contract.Root into the folder root.
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

// IsRotation reports whether a pod belongs to a rotation Job; other pods belong to fleets.
func IsRotation(pod *corev1.Pod) bool {
	return pod.Labels[build.LabelComponent] == build.ComponentRotation
}
