package contract

// The operator's own metrics. The values of labels are from fixed sets, or are names and
// namespaces of RelayPools, or public keys of payers.
var (
	MetricOperatorPools                 = Metric{"relaypool_operator_pools", "RelayPools by condition and its status: True, False or Unknown. Every RelayPool counts once under each condition that applies to it.", []string{"condition", "status"}}
	MetricOperatorPoolCondition         = Metric{"relaypool_operator_pool_condition", "1 for the status and reason that a condition of a RelayPool has now.", []string{"namespace", "pool", "condition", "status", "reason"}}
	MetricOperatorPaused                = Metric{"relaypool_operator_pool_paused", "1 while spec.paused keeps the operator from changing anything of a RelayPool; no sample otherwise.", []string{"namespace", "pool"}}
	MetricOperatorChainChecked          = Metric{"relaypool_operator_chain_check_timestamp_seconds", "When the chain was last read for a RelayPool. A failed reading leaves the last good one.", []string{"namespace", "pool"}}
	MetricOperatorChainUnavailableSince = Metric{"relaypool_operator_chain_unavailable_since_timestamp_seconds", "Since when no endpoint of a RelayPool has answered the operator. There is no sample while one does.", []string{"namespace", "pool"}}
	MetricOperatorPayerBalance          = Metric{"relaypool_operator_payer_balance_lamports", "A fee payer's last balance that the operator could read, by the state of its key: active, incoming, draining or retired.", []string{"namespace", "pool", "payer", "state"}}
	MetricOperatorPayerBalanceTime      = Metric{"relaypool_operator_payer_balance_timestamp_seconds", "When that balance was read.", []string{"namespace", "pool", "payer", "state"}}
	MetricOperatorRotation              = Metric{"relaypool_operator_rotation_step", "1 for the current step of a rotation; no sample without a rotation.", []string{"namespace", "pool", "step"}}
	MetricOperatorRotationStarted       = Metric{"relaypool_operator_rotation_step_started_timestamp_seconds", "When that step began.", []string{"namespace", "pool", "step"}}
	MetricOperatorPasses                = Metric{"relaypool_operator_passes_total", "Passes of this process over the objects of RelayPools, by outcome: steady (nothing to change), changed, held (an object was refused, belongs to somebody else, is being deleted or is changed repeatedly), conflict (a race, tried again at once) or failed.", []string{"outcome"}}
	MetricOperatorObjects               = Metric{"relaypool_operator_object_events_total", "Owned objects by kind and what this process did or found: applied, repaired (somebody else had changed it), pruned, refused, foreign, contested.", []string{"kind", "event"}}
	MetricOperatorExternalRequests      = Metric{"relaypool_operator_external_metric_requests_total", "Requests to the external metrics API of this process, by metric (other: none of ours) and outcome: served, unknown (no such metric or RelayPool), refused (another namespace's), not_ready (no pod is ready), stale (no reading of the last 30 s) or failed (the cache).", []string{"metric", "outcome"}}
	MetricOperatorBacklogRead           = Metric{"relaypool_operator_backlog_reading_timestamp_seconds", "When this process last read the backlog of a fleet that a HorizontalPodAutoscaler scales. If never, since when there have been pods to ask.", []string{"namespace", "pool"}}
	MetricOperatorCertificateExpiry     = Metric{"relaypool_operator_serving_certificate_expiry_timestamp_seconds", "When this process's certificate for external metrics expires. There is no sample while it has none.", nil}
)

// OperatorMetrics lists the operator's metrics, in the order of the documentation.
func OperatorMetrics() []Metric {
	return []Metric{
		MetricOperatorPools, MetricOperatorPoolCondition, MetricOperatorPaused,
		MetricOperatorChainChecked, MetricOperatorChainUnavailableSince,
		MetricOperatorPayerBalance, MetricOperatorPayerBalanceTime,
		MetricOperatorRotation, MetricOperatorRotationStarted,
		MetricOperatorPasses, MetricOperatorObjects,
		MetricOperatorExternalRequests, MetricOperatorBacklogRead, MetricOperatorCertificateExpiry,
	}
}
