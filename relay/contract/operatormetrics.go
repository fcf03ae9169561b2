package contract

// The operator's own metrics. Labels take values from fixed sets, names of
// RelayPools and their namespaces, and the public keys of payers.
var (
	MetricOperatorPools = Metric{"relaypool_operator_pools", "RelayPools by condition and its status: True, False or Unknown. Every RelayPool counts once under each condition.",
		"Ready with status False or Unknown above 0: relaypool_operator_pool_condition says which, and why.", []string{"condition", "status"}}
	MetricOperatorPoolCondition = Metric{"relaypool_operator_pool_condition", "1 for the status and reason that a condition of a RelayPool has now.",
		"Ready that is not True for minutes: kubectl describe the RelayPool; its message says what to do, and docs/reference/conditions.md explains each.", []string{"namespace", "pool", "condition", "status", "reason"}}
	MetricOperatorPaused = Metric{"relaypool_operator_pool_paused", "1 while spec.paused keeps the operator from changing anything of a RelayPool; no sample otherwise.",
		"For longer than somebody's work took: set spec.paused to false.", []string{"namespace", "pool"}}
	MetricOperatorChainCheckAge = Metric{"relaypool_operator_chain_check_age_seconds", "Age of the last good reading of the chain for a RelayPool; a failed one leaves the last good one, growing older.",
		"Above 600: the endpoints do not answer the operator; the condition PoolInitialised says what each did.", []string{"namespace", "pool"}}
	MetricOperatorChainUnavailable = Metric{"relaypool_operator_chain_unavailable_seconds", "How long no endpoint of a RelayPool has answered the operator; no sample while one does.",
		"Above 600: as before. The fleet goes on by itself if its own endpoints answer it.", []string{"namespace", "pool"}}
	MetricOperatorPayerBalance = Metric{"relaypool_operator_payer_balance_lamports", "A fee payer's last balance that the operator could read, by the state of its key: active, incoming, draining or retired.",
		"active near spec.feePayers.minimumBalance: fund it. retired above 0: the condition FeePayersFunded says how to move the funds.", []string{"namespace", "pool", "payer", "state"}}
	MetricOperatorPayerAge = Metric{"relaypool_operator_payer_balance_age_seconds", "Age of that reading.",
		"Above 600: the endpoints do not answer the operator.", []string{"namespace", "pool", "payer", "state"}}
	MetricOperatorRotation = Metric{"relaypool_operator_rotation_step", "1 for the step that a rotation under way has come to; no sample without one.",
		"Drain for hours: submissions of the old keys are not settled; the status says what the step waits for.", []string{"namespace", "pool", "step"}}
	MetricOperatorRotationAge = Metric{"relaypool_operator_rotation_step_age_seconds", "Time since that step began.",
		"Above 3600 on any step but Drain: the status and the events of the RelayPool say what it waits for.", []string{"namespace", "pool", "step"}}
	MetricOperatorPasses = Metric{"relaypool_operator_passes_total", "Passes of this process over the objects of RelayPools, by outcome: steady (nothing to change), changed, held (an object was refused, is somebody else's, is being deleted or is fought over), conflict (a race, tried again at once) or failed.",
		"failed on the rise: the log says why. changed on the rise without anybody's doing: somebody fights the operator; see relaypool_operator_objects_total.", []string{"outcome"}}
	MetricOperatorObjects = Metric{"relaypool_operator_objects_total", "Owned objects by kind and what this process did or found: applied, repaired (somebody else had changed it), pruned, refused, foreign, contested.",
		"repaired on the rise: find out who changes the object, and change the RelayPool instead. refused: the condition Stalled says which and why.", []string{"kind", "event"}}
	MetricOperatorExternalRequests = Metric{"relaypool_operator_external_metric_requests_total", "Requests to the external metrics API of this process, by metric (other: none of ours) and outcome: served, unknown (no such metric or RelayPool), refused (another namespace's), not_ready (no pod is ready), stale (no reading of the last 30 s) or failed (the cache).",
		"Anything but served on the rise: autoscalers hold their fleets; the condition AutoscalingActive says why. No requests at all: the APIService leads elsewhere.", []string{"metric", "outcome"}}
	MetricOperatorBacklogAge = Metric{"relaypool_operator_backlog_reading_age_seconds", "Age of this process' last reading of the backlog of a fleet that a HorizontalPodAutoscaler scales; where there has been none, how long there have been pods to ask.",
		"Above 30: the fleet's pods do not answer this process, and its autoscaler holds; look at the network policies between them.", []string{"namespace", "pool"}}
	MetricOperatorCertificateExpiry = Metric{"relaypool_operator_serving_certificate_expiry_seconds", "Time until the certificate is no longer valid with which this process serves external metrics; no sample while it serves none.",
		"Below 1814400, three weeks: the leader cannot change it, and its log says why.", nil}
)

// OperatorMetrics lists all of them, in the order of the documentation.
func OperatorMetrics() []Metric {
	return []Metric{
		MetricOperatorPools, MetricOperatorPoolCondition, MetricOperatorPaused,
		MetricOperatorChainCheckAge, MetricOperatorChainUnavailable,
		MetricOperatorPayerBalance, MetricOperatorPayerAge,
		MetricOperatorRotation, MetricOperatorRotationAge,
		MetricOperatorPasses, MetricOperatorObjects,
		MetricOperatorExternalRequests, MetricOperatorBacklogAge, MetricOperatorCertificateExpiry,
	}
}
