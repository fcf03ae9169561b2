package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/relay/contract"
)

// Every metric that is documented is served by the operator as it is started,
// not only by the collector's own tests.
func TestARunningOperatorServesEveryMetric(t *testing.T) {
	stand := pooltest.NewStand(t, apiservertest.Config(t))
	o := start(t, apiservertest.Config(t), stand.Namespace)
	// One whose keys rotate, which nobody runs the Jobs of, and one that is paused
	// and has no chain.
	stand.Create(t, stand.Pool("rotates"))
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
			if !strings.Contains(page, "\n"+m.Name+"{") {
				missing = append(missing, m.Name)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("none of %s", strings.Join(missing, ", "))
		}
		return nil
	})
}
