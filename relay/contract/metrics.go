package contract

// The names of the relay's own metrics; docs/metrics.md explains them. Gauges
// of shared state (backlog, held) are the same figure on every pod: take
// max by (namespace, pool), not sum.
const (
	// MetricBuildInfo is 1, with what was built in its labels.
	MetricBuildInfo = "relaypool_build_info"

	// MetricHTTPRequests counts answers by route, method and status.
	MetricHTTPRequests = "relaypool_http_requests_total"
	// MetricHTTPRequestDuration times answers by route and method.
	MetricHTTPRequestDuration = "relaypool_http_request_duration_seconds"

	// MetricSubmissionOutcomes counts submissions that ended, by kind and outcome.
	MetricSubmissionOutcomes = "relaypool_submission_outcomes_total"
	// MetricSubmissionStageDuration times the stages of submissions.
	MetricSubmissionStageDuration = "relaypool_submission_stage_duration_seconds"
	// MetricProofVerificationDuration times the verification of proofs.
	MetricProofVerificationDuration = "relaypool_proof_verification_duration_seconds"
	// MetricAttemptEvents counts what happens to signed transactions, rebroadcasts among it.
	MetricAttemptEvents = "relaypool_attempt_events_total"

	// MetricRPCCalls counts calls of the chain's RPC by method and class of answer.
	MetricRPCCalls = "relaypool_rpc_calls_total"
	// MetricRPCCallDuration times calls of the chain's RPC by method.
	MetricRPCCallDuration = "relaypool_rpc_call_duration_seconds"

	// MetricFeePayerBalance is the last good reading of a fee payer's balance.
	MetricFeePayerBalance = "relaypool_fee_payer_balance_lamports"
	// MetricFeePayerBalanceTimestamp is when that reading was made.
	MetricFeePayerBalanceTimestamp = "relaypool_fee_payer_balance_timestamp_seconds"

	// MetricBacklog is how many submissions are due, unclaimed and not held.
	MetricBacklog = "relaypool_backlog_jobs"
	// MetricBacklogOldestAge is the age of the oldest of them.
	MetricBacklogOldestAge = "relaypool_backlog_oldest_age_seconds"
	// MetricBacklogTimestamp is when backlog and held work were counted.
	MetricBacklogTimestamp = "relaypool_backlog_timestamp_seconds"
	// MetricHeld is how many submissions wait for the deployment, by reason.
	MetricHeld = "relaypool_held_jobs"

	// MetricTreeNextIndex is the number of leaves in the tree on the chain.
	MetricTreeNextIndex = "relaypool_tree_next_index"
	// MetricTreeSelfCheck is 1 while the tree account agrees with itself.
	MetricTreeSelfCheck = "relaypool_tree_self_check_ok"

	// MetricCommitmentsPublished is the number of leaves that GET /commitments serves.
	MetricCommitmentsPublished = "relaypool_commitments_published_leaves"
	// MetricCommitmentsLag is how many leaves the served list is behind the chain.
	MetricCommitmentsLag = "relaypool_commitments_lag_leaves"
	// MetricCommitmentsVerified is 1 while the list read from the chain has a root that the chain confirms.
	MetricCommitmentsVerified = "relaypool_commitments_verified"
)

// MetricNames lists every metric above.
func MetricNames() []string {
	return []string{
		MetricBuildInfo,
		MetricHTTPRequests,
		MetricHTTPRequestDuration,
		MetricSubmissionOutcomes,
		MetricSubmissionStageDuration,
		MetricProofVerificationDuration,
		MetricAttemptEvents,
		MetricRPCCalls,
		MetricRPCCallDuration,
		MetricFeePayerBalance,
		MetricFeePayerBalanceTimestamp,
		MetricBacklog,
		MetricBacklogOldestAge,
		MetricBacklogTimestamp,
		MetricHeld,
		MetricTreeNextIndex,
		MetricTreeSelfCheck,
		MetricCommitmentsPublished,
		MetricCommitmentsLag,
		MetricCommitmentsVerified,
	}
}
