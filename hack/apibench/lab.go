package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	namespace = "bench"
	// names of what every RelayPool names.
	database, circuit, value = "postgres", "circuit", "value"

	// slot is short, so that a payer's funds are there when they are looked at.
	slot = 100 * time.Millisecond

	startPatience = 2 * time.Minute
	stopGrace     = 30 * time.Second
)

// lab is all that one measurement needs: a fresh API server and a fresh chain.
type lab struct {
	server     *apiserver.Server
	chain      *localnet.Chain
	url        string
	config     *rest.Config
	client     client.Client
	scheme     *runtime.Scheme
	kubeconfig string
	settings   *settings
	stop       context.CancelFunc
}

// open makes a lab; close ends it, whatever was made.
func open(ctx context.Context, s *settings) (l *lab, err error) {
	l = &lab{settings: s}
	ctx, l.stop = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.server, err = apiserver.Start(ctx, apiserver.Options{Log: os.Stderr}); err != nil {
		return l, err
	}
	crds, err := apiserver.OwnCRDs()
	if err != nil {
		return l, err
	}
	if err := l.server.Install(ctx, crds...); err != nil {
		return l, err
	}
	if l.config, err = l.server.Config(); err != nil {
		return l, err
	}
	if l.kubeconfig, err = l.server.Kubeconfig(); err != nil {
		return l, err
	}
	l.scheme = runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(l.scheme), v1alpha1.AddToScheme(l.scheme)); err != nil {
		return l, err
	}
	l.config.QPS = -1 // what the stand-ins do is not to be waited for
	if l.client, err = client.New(l.config, client.Options{Scheme: l.scheme}); err != nil {
		return l, err
	}
	key, err := os.ReadFile(s.key) //nolint:gosec // a flag of a program for development
	if err != nil {
		return l, err
	}
	if l.chain, err = localnet.New(localnet.Options{VerifyingKey: key, Initialised: true, SlotDuration: slot}); err != nil {
		return l, err
	}
	l.chain.Start(ctx)
	if l.url, err = l.chain.Listen("127.0.0.1:0"); err != nil {
		return l, err
	}
	err = l.furnish(ctx, key)
	return l, err
}

// furnish makes what every RelayPool names.
func (l *lab) furnish(ctx context.Context, key []byte) error {
	named := metav1.ObjectMeta{Namespace: namespace}
	secret, config := &corev1.Secret{ObjectMeta: named}, &corev1.ConfigMap{ObjectMeta: named}
	secret.Name, secret.StringData = database, map[string]string{value: "postgres://relay@db.example/relay"}
	config.Name, config.Data = circuit, map[string]string{value: string(key)}
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, secret, config} {
		if err := l.client.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) close() error {
	l.stop()
	var err error
	if l.chain != nil {
		err = l.chain.Close()
	}
	if l.server != nil {
		err = errors.Join(err, l.server.Stop())
	}
	return err
}

// relayPool is one with two generated keys and all that is made by default.
func (l *lab) relayPool(i int) *v1alpha1.RelayPool {
	return &v1alpha1.RelayPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("pool-%03d", i)},
		Spec: v1alpha1.RelayPoolSpec{
			Pool: v1alpha1.Pool{
				Profile:              v1alpha1.Profile{Name: "development"},
				VerifyingKey:         v1alpha1.ConfigMapKey{Name: circuit, Key: value},
				CheckIntervalSeconds: l.settings.checkInterval,
			},
			Solana:      v1alpha1.Solana{Cluster: localnet.GenesisHash.String(), Endpoints: []v1alpha1.Endpoint{{Name: "local", URL: l.url}}},
			Database:    v1alpha1.Database{URLFrom: v1alpha1.SecretKey{Name: database, Key: value}},
			FeePayers:   v1alpha1.FeePayers{Generate: &v1alpha1.GeneratedKeys{Count: 2}},
			ViewingKeys: v1alpha1.ViewingKeys{CompliancePublicKey: "0000000000000000000000000000000000000000000000000000000000000001"},
		},
	}
}

// operator is the process that is measured.
type operator struct {
	*process.Process
	metrics string
}

// start runs an operator that leads without a Lease, whose renewal would count.
func (l *lab) start(ctx context.Context, name string) (*operator, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	o := &operator{metrics: "http://" + address + contract.MetricsPath}
	o.Process, err = process.Start("operator", filepath.Join(l.settings.state, name+".log"), l.settings.operator,
		"run", "--kubeconfig="+l.kubeconfig, "--relay-image=registry.example/relaypool/relay:"+contract.Version,
		"--leader-elect=false", "--cluster-wide", "--metrics-listen="+address, "--health-listen=none")
	if err != nil {
		return nil, err
	}
	err = await(ctx, startPatience, func() (bool, error) {
		m, err := o.read(ctx)
		return err == nil && m.Sum("controller_runtime_max_concurrent_reconciles") > 0, o.Ended()
	})
	if err != nil {
		err = errors.Join(fmt.Errorf("start the operator: %w", err), o.Stop(stopGrace))
	}
	return o, err
}

// read gives the operator's metrics.
func (o *operator) read(ctx context.Context) (gauge.Metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.metrics, http.NoBody)
	if err != nil {
		return nil, err
	}
	return page(http.DefaultClient, request)
}

// served gives the API server's metrics.
func (l *lab) served(ctx context.Context) (gauge.Metrics, error) {
	transport, err := rest.HTTPClientFor(l.config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.config.Host+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	return page(transport, request)
}

func page(c *http.Client, request *http.Request) (gauge.Metrics, error) {
	answer, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("metrics: %s", answer.Status)
	}
	return gauge.ReadMetrics([][]byte{content}), err
}

// await asks until the answer is true, or an error, or time is up.
func await(ctx context.Context, patience time.Duration, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it did not come to pass within %s: %w", patience, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
