package pooltest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

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
	// After this read, go test reuses a cached result only while the variable is unchanged.
	_ = os.Getenv("RELAYPOOL_SOURCES")
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
	return Postgres(t, relay).URL(MigratedDatabase)
}

// MigratedDatabase is the name of the database with the relay's schema, on a server that Postgres
// started.
const MigratedDatabase = "postgres"

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
	if err := os.WriteFile(file, []byte(server.URL(MigratedDatabase)), 0o600); err != nil {
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
