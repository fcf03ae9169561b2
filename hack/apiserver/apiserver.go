// Package apiserver runs a real Kubernetes API server with its etcd for tests:
// validation, defaulting, server-side apply, RBAC and PodSecurity admission are
// the real ones. Both programs are built once from the modules pinned in
// kubernetes/ and etcd/, kept in the user's cache folder, and listen on the
// loopback address alone.
//
// An APIService whose Service is of the type ExternalName has requests passed on
// to any server on this machine.
//
// There are no nodes. Without Options.Controllers there are no controllers
// either: nobody makes pods of a Deployment or deletes what has lost its
// owner. The admission plugin ServiceAccount is off, so that pods need no
// service account to exist.
//
// Tests use the package apiservertest.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/relaypool/relaypool/hack/freeport"
)

const (
	// tempPrefix begins the names of the folders that Start makes.
	tempPrefix   = "relaypool-test-apiserver-"
	readyTimeout = 2 * time.Minute
	pollInterval = 50 * time.Millisecond
	// portAttempts is how often Start looks for other ports when another
	// process took one between the search and the listening.
	portAttempts = 3
)

// Options says what a server is made of.
type Options struct {
	// Log receives the progress of a build. Nil discards it.
	Log io.Writer
	// Controllers are run by a kube-controller-manager, by their names there,
	// such as deployment-controller, replicaset-controller, job-controller,
	// garbage-collector-controller, namespace-controller or
	// horizontal-pod-autoscaler-controller. Nil runs none and builds no
	// controller manager.
	Controllers []string
	// Data is a file of another server's objects to begin with, as its etcd
	// held them: its folder, in tar and gzip. Empty begins with none.
	Data string
}

// Server is a running API server. The methods of Access may be called at any
// time, its own must not be called concurrently.
type Server struct {
	*Access
	dir         string
	bin         Binaries
	controllers []string
	addresses   []string // of etcd, API server, controller manager
	lock        *os.File

	etcd, api, manager *process
}

// Start builds what is missing, starts etcd and the API server on a folder of
// their own and returns when the server is ready, normally after four seconds.
// They end when this process does, on Linux however it ends; ctx bounds only
// the start.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	bin, err := EnsureBinaries(ctx, opts.Log, len(opts.Controllers) > 0)
	if err != nil {
		return nil, err
	}
	removeAbandoned(os.TempDir(), time.Now().Add(-time.Minute))
	for attempt := 1; ; attempt++ {
		s, err := startOnce(ctx, bin, opts)
		if err == nil {
			return s, nil
		}
		if attempt == portAttempts || !strings.Contains(err.Error(), "address already in use") {
			return nil, fmt.Errorf("start the API server: %w", err)
		}
	}
}

func startOnce(ctx context.Context, bin Binaries, opts Options) (s *Server, err error) {
	dir, err := os.MkdirTemp("", tempPrefix)
	if err != nil {
		return nil, err
	}
	s = &Server{dir: dir, bin: bin, controllers: opts.Controllers}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if s.lock, err = lockFolder(dir); err != nil {
		return nil, err
	}
	if s.addresses, err = freeport.Find(ctx, 3); err != nil {
		return nil, err
	}
	authority, err := newAuthority("relaypool-test-authority")
	if err != nil {
		return nil, err
	}
	if err := authority.writeFiles(dir); err != nil {
		return nil, err
	}
	s.Access = &Access{address: "https://" + s.addresses[1], authority: authority}
	if err := os.WriteFile(filepath.Join(dir, addressFile), []byte(s.address), 0o600); err != nil {
		return nil, err
	}
	if opts.Data != "" {
		if err := unpack(opts.Data, s.etcdFolder()); err != nil {
			return nil, err
		}
	}
	if err := s.startEtcd(); err != nil {
		return nil, err
	}
	if err := s.startAPI(ctx); err != nil {
		return nil, err
	}
	if len(opts.Controllers) > 0 {
		if err := s.startManager(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// startEtcd does not wait: the API server does.
func (s *Server) startEtcd() (err error) {
	url := "http://" + s.addresses[0]
	s.etcd, err = start(s.dir, s.bin[etcdProgram],
		"--data-dir="+s.etcdFolder(),
		"--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls=http://127.0.0.1:0",
		// A kill of etcd loses nothing by it, and no test survives a power cut.
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
	return err
}

func (s *Server) startAPI(ctx context.Context) (err error) {
	file := func(name string) string { return filepath.Join(s.dir, name) }
	s.api, err = start(s.dir, s.bin[apiServerProgram],
		"--etcd-servers=http://"+s.addresses[0],
		"--bind-address=127.0.0.1", "--secure-port="+portOf(s.addresses[1]),
		"--tls-cert-file="+file(serverCertFile), "--tls-private-key-file="+file(serverKeyFile),
		"--client-ca-file="+file(authorityFile),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file="+file(tokenKeyFile), "--service-account-key-file="+file(tokenKeyFile),
		"--service-cluster-ip-range=10.0.0.0/16",
		// The Service kubernetes may not point to a loopback address, and nobody
		// here uses it.
		"--endpoint-reconciler-type=none",
		"--disable-admission-plugins=ServiceAccount",
		// For APIServices: requests are passed on with who asks in these headers. There
		// is no network of Services; one of the type ExternalName leads anywhere.
		"--requestheader-client-ca-file="+file(proxyAuthorityFile), "--requestheader-allowed-names="+proxyName,
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+file(proxyCertFile), "--proxy-client-key-file="+file(proxyKeyFile),
		"--allow-privileged=true",
		// Tests of outages end the server and have no time for its farewells.
		"--shutdown-delay-duration=0s",
	)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return s.api.await(ctx, s.ready)
}

// ready asks the server whether it is, its own start-up included: before that
// the roles that RBAC brings are not all there.
func (s *Server) ready(ctx context.Context) error {
	config, err := s.Config()
	if err != nil {
		return err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+"/readyz", http.NoBody)
	if err != nil {
		return fmt.Errorf("ask whether the API server is ready: %w", err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask whether the API server is ready: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
		return fmt.Errorf("ask whether the API server is ready: %s: %s", answer.Status, lastLines(string(body)))
	}
	return nil
}

func (s *Server) startManager(ctx context.Context) error {
	kubeconfig, err := s.Kubeconfig()
	if err != nil {
		return err
	}
	s.manager, err = start(s.dir, s.bin[controllerManagerProgram],
		"--kubeconfig="+kubeconfig,
		"--controllers="+strings.Join(s.controllers, ","),
		"--bind-address=127.0.0.1", "--secure-port="+portOf(s.addresses[2]),
		"--leader-elect=false",
		"--horizontal-pod-autoscaler-sync-period=1s",
		"--kube-api-qps=500", "--kube-api-burst=1000",
	)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return s.manager.await(ctx, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.addresses[2])
		if err != nil {
			return fmt.Errorf("ask whether the controllers run: %w", err)
		}
		return conn.Close()
	})
}

func (s *Server) etcdFolder() string { return filepath.Join(s.dir, "etcd") }

// Dir is the folder for everything of this server, its logs included. Open
// takes it.
func (s *Server) Dir() string { return s.dir }

// Kubeconfig writes a file with which kubectl may do anything, and returns its
// path.
func (s *Server) Kubeconfig() (string, error) {
	config, err := s.Config()
	if err != nil {
		return "", err
	}
	const name = "relaypool-test"
	path := filepath.Join(s.dir, "kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
	if err != nil {
		return "", fmt.Errorf("write the kubeconfig: %w", err)
	}
	return path, nil
}

// Kill ends the API server as a crash would. Clients' connections break and
// new ones are refused until Restart; etcd keeps the objects.
func (s *Server) Kill() error { return s.api.kill() }

// Restart starts the API server again after a Kill, or ends it first, on the
// same address with the same objects and keys, and returns when it is ready.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.api.kill(); err != nil {
		return err
	}
	if err := s.startAPI(ctx); err != nil {
		return fmt.Errorf("restart the API server: %w", err)
	}
	return nil
}

// Stop ends the server and deletes its folder. Stopping a stopped server does
// nothing.
func (s *Server) Stop() error {
	var err error
	for _, p := range []*process{s.manager, s.api, s.etcd} {
		if p != nil {
			err = errors.Join(err, p.kill())
		}
	}
	err = errors.Join(err, os.RemoveAll(s.dir))
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
		s.lock = nil
	}
	if err != nil {
		return fmt.Errorf("stop the API server: %w", err)
	}
	return nil
}

// lockFolder marks the folder as used for the life of this process: the kernel
// frees the lock when its holder dies.
func lockFolder(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the server's folder: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the server's folder: %w", err), file.Close())
	}
	return file, nil
}

// removeAbandoned deletes the folders that no living process holds: a test
// that is killed, by Ctrl-C or its timeout, cannot delete its own, and each is
// some 70 MB. Those younger than the given time are left alone: their process
// may not have locked them yet. It is housekeeping, so whatever it cannot
// delete, for example another user's, stays without an error.
func removeAbandoned(parent string, before time.Time) {
	dirs, _ := filepath.Glob(filepath.Join(parent, tempPrefix+"*"))
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || info.ModTime().After(before) {
			continue
		}
		lock, err := lockFolder(dir)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}
}
