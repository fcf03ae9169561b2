package pool

import (
	"strings"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

func accepted(f *Facts, p *Plan) verdict {
	if len(p.Faults) > 0 {
		return notAccepted(p)
	}
	return conditionTrue(v1alpha1.ReasonValid, "the spec is valid"+missingMonitoring(f))
}

// notAccepted is the verdict on a spec that is invalid or not allowed.
func notAccepted(p *Plan) verdict {
	return conditionFalse(p.FaultReason, joinFirst(p.Faults, 5))
}

// missingMonitoring returns the end of the condition's message. It names the monitoring
// objects that are enabled although the cluster lacks their kinds, if there are any. Both
// monitoring objects are enabled by default, so a missing kind is not a fault of the spec.
func missingMonitoring(f *Facts) string {
	if f.isUnread(PartCapabilities) {
		return ""
	}
	var kinds, fields []string
	for _, m := range []struct {
		wanted v1alpha1.Switch
		has    bool
		kind   string
		field  string
	}{
		{f.Pool.Spec.Monitoring.PodMonitor, f.Capabilities.PodMonitor, build.KindPodMonitor.Kind, "spec.monitoring.podMonitor"},
		{f.Pool.Spec.Monitoring.PrometheusRule, f.Capabilities.PrometheusRule, build.KindPrometheusRule.Kind, "spec.monitoring.prometheusRule"},
	} {
		if m.wanted != v1alpha1.Disabled && !m.has {
			kinds, fields = append(kinds, m.kind), append(fields, m.field)
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return "; no " + strings.Join(kinds, " and no ") + " is made until the Prometheus operator's CRDs are installed (" +
		strings.Join(fields, " and ") + ": Disabled makes none)"
}
