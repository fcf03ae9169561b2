package externalmetrics_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/controllers/internal/servingcert"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/openapi"
)

// A real API server passes requests on without interruption while the certificate that it
// verifies changes several times. Each request has its own connection to the API server,
// which may reuse its connections to the operator.
func TestNoRequestFailsWhileTheCertificateChanges(t *testing.T) {
	t.Parallel()
	// Each certificate is valid for an hour, and the next one is made after 3 seconds. The API server has 6
	// seconds to trust it, which on a busy machine it needs.
	w := newWorld(t, servingcert.Options{Validity: time.Hour, RenewBefore: time.Hour - 3*time.Second, TrustDelay: 6 * time.Second, Interval: time.Second})
	must(t, w.Chain.Initialize())
	w.pods.set(&openapi.Backlog{DueCount: 5})
	w.Create(t, w.Pool("demo", func(p *v1alpha1.RelayPool) { p.Spec.Autoscaling = &v1alpha1.Autoscaling{MaxReplicas: 2} }))
	read := func(ctx context.Context) error {
		_, _, err := ask(ctx, w.Config, w.Namespace, contract.MetricBacklog.Name, selectorOf(w.Namespace, "demo"))
		return err
	}
	pooltest.Eventually(t, "the backlog is read", func() error { return read(t.Context()) })

	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	var mutex sync.Mutex
	requests, failures := 0, []error(nil)
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				err := read(ctx)
				mutex.Lock()
				if requests++; err != nil && ctx.Err() == nil {
					failures = append(failures, err)
				}
				mutex.Unlock()
			}
		})
	}
	served := map[string]bool{}
	pooltest.Eventually(t, "three certificates are served", func() error {
		var secret corev1.Secret
		if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: contract.OperatorSystemNamespace, Name: contract.OperatorExternalMetrics}, &secret); err != nil {
			return err
		}
		if served[string(secret.Data[corev1.TLSCertKey])] = true; len(served) < 3 {
			return fmt.Errorf("%d so far", len(served))
		}
		return nil
	})
	mutex.Lock()
	before := requests
	mutex.Unlock()
	pooltest.Eventually(t, "the last certificate serves requests", func() error {
		mutex.Lock()
		defer mutex.Unlock()
		if requests < before+50 {
			return fmt.Errorf("%d requests since", requests-before)
		}
		return nil
	})
	stop()
	readers.Wait()
	if len(failures) > 0 {
		t.Errorf("%d of %d requests failed, the first: %v", len(failures), requests, failures[0])
	}
	t.Logf("%d requests over %d certificates", requests, len(served))
}
