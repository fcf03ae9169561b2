// Package apiserver runs a real Kubernetes API server with its etcd for tests:
// validation, defaulting, server-side apply, RBAC and PodSecurity admission are
// real. controller-runtime's envtest starts both on the loopback address. This package
// gets the programs, and ends them with the test, even if the test is killed.
//
// There are no nodes. Without Options.Controllers there are no controllers
// either: Deployments get no pods, and objects without their owner are not deleted.
// The admission plugin ServiceAccount is off, so that pods need no service account
// to exist. An APIService whose Service is of the type ExternalName forwards requests
// to any server on this machine.
//
// Tests use the package apiservertest.
package apiserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/relaypool/relaypool/hack/freeport"
	"github.com/relaypool/relaypool/hack/process"
)

const (
	readyTimeout = 2 * time.Minute
	stopTimeout  = 2 * time.Minute
	pollInterval = 50 * time.Millisecond
	// proxyName is the name of the API server in requests that it forwards to other servers.
	proxyName = "relaypool-test-proxy"
)

// wrapper starts a program. It records the process id, which envtest does not export, and
// runs the program without the caller's environment, such as proxies and ETCD_ variables.
const wrapper = `#!/bin/sh
echo $$ >"$0.pid"
exec env -i HOME="${0%/*}" "$0.program" "$@"
`

// watchdog waits for the end of its input. Stop closes it, or the kernel when this process
// ends. Then the watchdog kills the programs and deletes the folder.
const watchdog = `read -r _
for pid in $(cat "$1"/*.pid); do kill -9 "$pid"; done
for _ in 1 2 3 4 5; do rm -rf "$1" && exit; sleep 1; done
`

// Options configures a server.
type Options struct {
	// Log receives the progress of a build. Nil discards it.
	Log io.Writer
	// Controllers are the names of the controllers that kube-controller-manager
	// runs, such as deployment-controller, replicaset-controller, job-controller,
	// garbage-collector-controller, namespace-controller or
	// horizontal-pod-autoscaler-controller. With nil, no controller manager is
	// built or started.
	Controllers []string
	// Data is the etcd data folder of an earlier server, which this server continues to
	// use. Empty means a new folder.
	Data string
	// NoCRDs starts the server without the project's CRDs.
	NoCRDs bool
}

// Server is a running API server. Its methods are safe for concurrent use, apart
// from Stop.
type Server struct {
	// Plane is etcd and the API server, for tests that stop one of them.
	Plane envtest.ControlPlane

	dir      string
	users    sync.Mutex // guards the serial numbers of Plane's certificates
	watchdog *exec.Cmd
	watched  io.Closer // the watchdog's input
}

// Start gets missing programs, starts etcd and the API server in a new folder, and
// returns when the server is ready, normally after five seconds. Both end with this
// process, even if this process is killed. ctx limits only the start.
func Start(ctx context.Context, opts Options) (_ *Server, err error) {
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	programs, err := EnsurePrograms(ctx, opts.Log, len(opts.Controllers) > 0)
	if err != nil {
		return nil, err
	}
	s := &Server{}
	defer func() {
		if err != nil {
			err = fmt.Errorf("start the API server: %w", errors.Join(err, s.Stop()))
		}
	}()
	if err := s.makeFolder(programs); err != nil {
		return nil, err
	}
	addresses, err := freeport.Find(ctx, 3)
	if err != nil {
		return nil, err
	}
	if opts.Data == "" {
		opts.Data = s.path("etcd-data")
	}
	if err := s.startPlane(opts.Data, addresses[0], addresses[1]); err != nil {
		return nil, err
	}
	if len(opts.Controllers) > 0 {
		if err := s.startControllers(ctx, addresses[2], opts.Controllers); err != nil {
			return nil, err
		}
	}
	if opts.NoCRDs {
		return s, nil
	}
	crds, err := OwnCRDs()
	if err != nil {
		return nil, err
	}
	err = s.Install(crds...)
	return s, err
}

// makeFolder makes the server's folder, with the programs, and starts the watchdog.
func (s *Server) makeFolder(programs Programs) (err error) {
	if s.dir, err = os.MkdirTemp("", "relaypool-test-apiserver-"); err != nil {
		return err
	}
	s.watchdog = exec.Command("/bin/sh", "-c", watchdog, "sh", s.dir) //nolint:noctx // a constant script; Stop ends it
	s.watchdog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}      // Ctrl-C must not end it
	if s.watched, err = s.watchdog.StdinPipe(); err != nil {
		return err
	}
	if err := s.watchdog.Start(); err != nil {
		return err
	}
	for name, file := range programs {
		if err := os.Symlink(file, s.path(name+".program")); err != nil {
			return err
		}
		if err := os.WriteFile(s.path(name), []byte(wrapper), 0o700); err != nil { //nolint:gosec // it is a program
			return err
		}
	}
	return s.writeProxyCertificate()
}

// writeProxyCertificate makes the certificate that the API server presents when it forwards
// requests. The certificate is self-signed: users have no certificate of its authority, and
// so cannot impersonate other users.
func (s *Server) writeProxyCertificate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: proxyName}, key)
	if err != nil {
		return err
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	public, err := cert.EncodeCertificates(certificate)
	if err != nil {
		return err
	}
	return errors.Join(cert.WriteCert(s.path("proxy.crt"), public), keyutil.WriteKey(s.path("proxy.key"), encoded))
}

// startPlane starts etcd and the API server and waits until they are ready. It sets the
// addresses, because envtest might choose ports that other processes take before the start.
func (s *Server) startPlane(data, etcdAddress, apiAddress string) error {
	log, err := os.Create(s.path("log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the programs have their own descriptors
	s.Plane = envtest.ControlPlane{
		Etcd: &envtest.Etcd{
			Path: s.path(etcdProgram), DataDir: data, URL: &url.URL{Scheme: "http", Host: etcdAddress},
			StartTimeout: readyTimeout, Out: log, Err: log,
		},
		APIServer: &envtest.APIServer{
			Path: s.path(apiServerProgram), CertDir: s.dir, StartTimeout: readyTimeout, Out: log, Err: log,
		},
	}
	host, port, err := net.SplitHostPort(apiAddress)
	if err != nil {
		return err
	}
	s.Plane.APIServer.ListenAddr = envtest.ListenAddr{Address: host, Port: port}
	s.Plane.Etcd.Configure().Set("listen-peer-urls", "http://127.0.0.1:0").Set("log-level", "warn")
	s.Plane.APIServer.Configure().
		Set("service-cluster-ip-range", "10.0.0.0/16"). // room for hundreds of fleets
		// The Service kubernetes, which no test uses, cannot have a loopback address.
		Set("endpoint-reconciler-type", "none").
		// For APIServices: these headers have the user of a forwarded request.
		Set("requestheader-client-ca-file", s.path("proxy.crt")).Set("requestheader-allowed-names", proxyName).
		Set("requestheader-username-headers", "X-Remote-User").Set("requestheader-group-headers", "X-Remote-Group").
		Set("requestheader-extra-headers-prefix", "X-Remote-Extra-").
		Set("proxy-client-cert-file", s.path("proxy.crt")).Set("proxy-client-key-file", s.path("proxy.key"))
	if err := s.Plane.Start(); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w; the end of the log: %s", err, lastLines(string(text)))
	}
	return nil
}

func (s *Server) startControllers(ctx context.Context, address string, controllers []string) error {
	kubeconfig, err := s.Kubeconfig()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	manager, err := process.Start(controllerProgram, s.path("controllers.log"), s.path(controllerProgram),
		"--kubeconfig="+kubeconfig, "--controllers="+strings.Join(controllers, ","),
		"--bind-address=127.0.0.1", "--secure-port="+port, "--leader-elect=false",
		"--horizontal-pod-autoscaler-sync-period=1s", "--kube-api-qps=500", "--kube-api-burst=1000")
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return false, manager.Ended() // not ready yet
		}
		return true, conn.Close()
	})
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// Dir returns the folder of all files of this server.
func (s *Server) Dir() string { return s.dir }

// Stop stops the server and deletes its folder. It does nothing if the server is stopped.
func (s *Server) Stop() error {
	if s.dir == "" {
		return nil // Start has not made the folder
	}
	pidFiles, _ := filepath.Glob(s.path("*.pid")) // Glob fails only for an invalid pattern
	for _, file := range pidFiles {
		text, _ := os.ReadFile(file)
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			continue // killed before it recorded its id
		}
		// Wait until the process has been reaped, because only then is its port closed.
		for deadline := time.Now().Add(stopTimeout); time.Now().Before(deadline) && syscall.Kill(pid, syscall.SIGKILL) == nil; {
			time.Sleep(pollInterval)
		}
	}
	if s.watched != nil {
		_ = s.watched.Close() // fails if an earlier Stop has closed it
		_ = s.watchdog.Wait() // RemoveAll below deletes remaining files
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("stop the API server: %w", err)
	}
	return nil
}
