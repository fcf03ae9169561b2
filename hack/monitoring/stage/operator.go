package stage

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/freeport"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/hack/sandbox"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// valueKey is the key of each Secret and ConfigMap that the RelayPool names.
const valueKey = "value"

// checkInterval is the minimum check interval that a RelayPool accepts, in seconds.
const checkInterval = 10

// operator reconciles a RelayPool with the stage's chain and payers, on an API server
// without nodes: it reads the chain as in a cluster, and has no pods.
type operator struct {
	server  *apiserver.Server
	process *process.Process
	// address serves its metrics.
	address string
}

func (s *Stage) startOperator(ctx context.Context) (err error) {
	log.SetLogger(logr.Discard()) // the client's log has no messages of interest
	if err := s.Build(ctx, "./controllers/cmd/operator"); err != nil {
		return err
	}
	if s.operator.server, err = apiserver.Start(ctx, apiserver.Options{Log: s.o.Progress}); err != nil {
		return err
	}
	if err := s.declare(ctx); err != nil {
		return err
	}
	kubeconfig, err := s.operator.server.Kubeconfig()
	if err != nil {
		return err
	}
	addresses, err := freeport.Find(ctx, 1)
	if err != nil {
		return err
	}
	s.operator.address = addresses[0]
	s.operator.process, err = s.Sandbox.Start("operator", "operator", "run",
		"--kubeconfig="+kubeconfig, "--relay-image=relaypool.example/relay:"+contract.Version, "--leader-elect=false", "--cluster-wide",
		"--metrics-listen="+s.operator.address, "--health-listen=none")
	if err != nil {
		return err
	}
	return sandbox.Await(ctx, s.operator.process, func(ctx context.Context) error {
		_, err := sandbox.Get(ctx, "http://"+s.operator.address+contract.MetricsPath)
		return err
	})
}

// declare makes the RelayPool and the objects that it names.
func (s *Stage) declare(ctx context.Context) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	config, err := s.operator.server.Config()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	secret := func(name, content string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.o.Namespace, Name: name}, StringData: map[string]string{valueKey: content}}
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.o.Namespace}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.o.Namespace, Name: "circuit"}, Data: map[string]string{valueKey: string(s.VerifyingKey)}},
		secret("database", "postgres://relay@db.example/relay"),
	}
	var keys []v1alpha1.SecretKeyReference
	for i := range payers - 1 { // the last one's key is in a key service
		content, err := os.ReadFile(s.PayerFile(i + 1))
		if err != nil {
			return err
		}
		name := fmt.Sprintf("payer-%d", i+1)
		objects = append(objects, secret(name, string(content)))
		keys = append(keys, v1alpha1.SecretKeyReference{Name: name, Key: valueKey})
	}
	var list []v1alpha1.Endpoint
	for _, e := range s.endpoints {
		list = append(list, v1alpha1.Endpoint{Name: e.Name, URL: e.URL})
	}
	objects = append(objects, &v1alpha1.RelayPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.o.Namespace, Name: s.o.Pool},
		Spec: v1alpha1.RelayPoolSpec{
			Pool: v1alpha1.Pool{
				Profile: v1alpha1.Profile{Name: shieldpool.Development().Name}, VerifyingKeyConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "circuit", Key: valueKey},
				CheckIntervalSeconds: checkInterval,
			},
			Solana:   v1alpha1.Solana{Cluster: shieldpool.DevelopmentGenesisHash.String(), Endpoints: list},
			Database: v1alpha1.Database{URLSecretRef: v1alpha1.SecretKeyReference{Name: "database", Key: valueKey}},
			FeePayers: v1alpha1.FeePayers{SecretRefs: keys, Signers: []v1alpha1.Signer{{
				Name: "vault", Address: s.Payers[payers-1].PublicKey().String(), VaultTransit: &v1alpha1.VaultTransit{
					URL: "https://vault.example", Key: "payer", KeyVersion: 1, TokenSecretRef: &v1alpha1.SecretKeyReference{Name: "database", Key: valueKey},
				},
			}}},
			ViewingKeys: v1alpha1.ViewingKeys{CompliancePublicKey: s.Compliance},
		},
	})
	for _, object := range objects {
		if err := c.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// Operator returns the address at which Prometheus scrapes the operator.
func (s *Stage) Operator() string { return s.operator.address }

func (o *operator) close() error {
	var err error
	if o.process != nil {
		err = o.process.Kill()
	}
	if o.server != nil {
		err = errors.Join(err, o.server.Stop())
	}
	return err
}
