package build

import (
	"fmt"

	"github.com/relaypool/relaypool/relay/contract"
)

func swapAlerts() []alert {
	return []alert{
		{
			"RouterDown", "min(" + contract.MetricRouterBreakerOpen.Name + "{}) == 1", 5 * minute, severityCritical,
			"no swap router answers: each swap that is accepted meanwhile costs its user the pool's fee",
		},
		{
			"RouterRoutesRejected", "sum(increase(" + contract.MetricRouterRejected.Name + "{}[15m])) > 0", 0, severityCritical,
			"a swap router gave answers that contradict the request",
		},
		{
			"RouterFails", fmt.Sprintf(`sum by (router) (increase(%[1]s{,outcome!="ok",outcome!="no_route"}[15m])) > clamp_min(0.1 * sum by (router) (increase(%[1]s{}[15m])), %[2]d)`, contract.MetricRouterRequests.Name, minFailures), 15 * minute, severityWarning,
			"a tenth of the calls to the swap router {{ $labels.router }} fail",
		},
		{
			"SwapsRefunded", shareAbove(contract.MetricSwapsEnded.Name+`{,outcome="refunded"}`, "0.2", contract.MetricSwapsEnded.Name+"{}", "1h", minFailures), 15 * minute, severityWarning,
			"a fifth of the swaps are refunded",
		},
	}
}

// swapOverdue is an alert of every fleet. A fleet without spec.swap has it too: swaps that were
// under way when swaps were turned off still have to end.
func swapOverdue() alert {
	return alert{
		"SwapOverdue", "max(" + contract.MetricSwapsOverdue.Name + "{}) > 0", 3 * minute, severityCritical,
		"a swap is past its timeout, neither executed nor refunded: a user's funds wait",
	}
}
