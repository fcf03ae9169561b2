package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// renew renews a Lease every 100 ms until the test ends, as an operator does.
func renew(t *testing.T, c runtimeclient.Client, lease *coordinationv1.Lease) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-done })
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				before := lease.DeepCopy()
				lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
				if err := c.Patch(t.Context(), lease, runtimeclient.MergeFrom(before)); err != nil && t.Context().Err() == nil {
					t.Errorf("renew the Lease: %v", err)
				}
			}
		}
	}()
}

func TestCheckNamesWhatDoesNotWork(t *testing.T) {
	t.Parallel()
	holder := "relaypool-operator-0"
	tests := map[string]struct {
		// lease is the operator's Lease, or nil if there is none.
		lease  *coordinationv1.LeaseSpec
		renews bool
		flags  []string
		want   string
	}{
		"an operator leads":           {lease: &coordinationv1.LeaseSpec{HolderIdentity: &holder}, renews: true},
		"no operator has ever led":    {want: "which an operator that runs holds"},
		"the last leader was stopped": {lease: &coordinationv1.LeaseSpec{HolderIdentity: new(string), RenewTime: &metav1.MicroTime{Time: time.Now()}}, want: "no operator holds the Lease"},
		"the leader was killed":       {lease: &coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: time.Now()}}, want: "relaypool-operator-0 holds the Lease"},
		"without leader election":     {flags: []string{"--leader-elect=false"}},
		"several namespaces":          {flags: []string{"--leader-elect=false", "--namespaces=default,kube-system"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := apiservertest.Namespace(t)
			c, err := runtimeclient.New(apiservertest.Config(t), runtimeclient.Options{})
			noError(t, err)
			if tt.lease != nil {
				lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "relaypool-operator"}, Spec: *tt.lease}
				noError(t, c.Create(t.Context(), lease))
				if tt.renews {
					renew(t, c, lease)
				}
			}
			timeout := "3s"
			if tt.want == "" {
				timeout = "1m"
			}
			code, out, stderr := command(t, "", append([]string{
				"check", "--kubeconfig=" + kubeconfig(t, apiservertest.Config(t)), "--namespaces=" + namespace, "--operator-namespace=" + namespace, "--timeout=" + timeout,
			}, tt.flags...)...)
			works := "the operator works\n"
			if slices.Contains(tt.flags, "--leader-elect=false") {
				works = "RelayPools are served and may be listed; without a Lease, nothing says whether the operator runs\n"
			}
			if tt.want == "" && (code != 0 || out != works) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %q", code, out, stderr, works)
			}
			if tt.want != "" && (code != 1 || out != "" || !strings.Contains(stderr, tt.want)) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want 1 and %q", code, out, stderr, tt.want)
			}
		})
	}
}

func TestCheckNeedsTheDefinition(t *testing.T) {
	t.Parallel()
	server := apiservertest.Start(t, apiserver.Options{NoCRDs: true})
	config, err := server.Config()
	noError(t, err)
	code, _, stderr := command(t, "", "check", "--kubeconfig="+kubeconfig(t, config), "--leader-elect=false", "--timeout=2s")
	if code != 1 || !strings.Contains(stderr, "lacks the CustomResourceDefinition of RelayPool") {
		t.Errorf("exit code %d, stderr %q; want 1 and that the definition is missing", code, stderr)
	}
}
