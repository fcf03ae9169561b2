package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/relay/contract"
)

// A running operator must serve every documented metric: the collector's own tests do not
// show that the collector is registered.
func TestARunningOperatorServesEveryMetric(t *testing.T) {
	stand := pooltest.NewStand(t, apiservertest.Config(t))
	o := start(t, apiservertest.Config(t), stand.Namespace, "--external-metrics-listen="+freeAddress(t))
	makePod(t, stand, "rotates")
	// One pool rotates its keys, but no Job runs. The other is paused and
	// cannot reach a chain.
	stand.Create(t, stand.Pool("rotates", func(p *v1alpha1.RelayPool) { p.Spec.Autoscaling = &v1alpha1.Autoscaling{MaxReplicas: 2} }))
	stand.Fund(t, "rotates", 1_000_000)
	pooltest.Change(t, stand, "rotates", &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) {
		p.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: 1}
	})
	stand.Create(t, stand.Pool("paused", func(p *v1alpha1.RelayPool) {
		p.Spec.Paused, p.Spec.Solana.Endpoints[0].URL = true, "http://"+freeAddress(t)
	}))
	eventually(t, "every metric has a sample", o, func(ctx context.Context) error {
		page, err := get(ctx, "http://"+o.metrics+contract.MetricsPath)
		if err != nil {
			return err
		}
		var missing []string
		for _, m := range contract.OperatorMetrics() {
			if !strings.Contains(page, "\n"+m.Name+"{") && !strings.Contains(page, "\n"+m.Name+" ") {
				missing = append(missing, m.Name)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("no sample of %s", strings.Join(missing, ", "))
		}
		return nil
	})
}

// makePod makes a pod of the fleet that serves /backlog. On Linux it has its own
// loopback address, because a relay may use the same port on 127.0.0.1.
func makePod(t *testing.T, stand *pooltest.Stand, pool string) {
	t.Helper()
	port := strconv.Itoa(contract.OperationsPort)
	ip := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(ip, port))
	if err != nil {
		ip = "127.0.0.1"
		listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(ip, port))
	}
	noError(t, err)
	server := &http.Server{ReadHeaderTimeout: testTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"due_count":1,"oldest_due_age_seconds":2,"held":{}}`)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { noError(t, server.Close()) })

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pool + "-0", Labels: build.Labels(pool)},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: build.RelayContainer, Image: "relay", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}}},
		},
	}
	stand.Create(t, pod)
	pod.Status = pooltest.Ready(pod)
	pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	noError(t, stand.Client.Status().Update(t.Context(), pod))
}
