package contract

// Metric is one of the relay's own metrics.
type Metric struct {
	// Name is in Prometheus' form; the name of a counter ends with _total.
	Name string
	// Help says what the metric measures.
	Help   string
	Labels []string
}

// The relay's metrics. The values of labels are from fixed sets, or are configured names of
// endpoints and routers, or public keys of payers. They contain nothing from a request. Figures
// of the fleet come from the database, and are the same on every process.
var (
	MetricBuildInfo = Metric{"relaypool_build_info", "Always 1; the labels identify the build.", []string{"version", "revision"}}

	MetricHTTPRequests   = Metric{"relaypool_http_requests_total", "Requests answered, by route and status.", []string{"route", "method", "status"}}
	MetricHTTPDuration   = Metric{"relaypool_http_request_duration_seconds", "Time to answer, waits for outcomes included.", []string{"route", "method"}}
	MetricClientRequests = Metric{"relaypool_client_requests_total", "Requests with a named API key, by the key's name and the status.", []string{"api_key", "status"}}
	MetricWaiting        = Metric{"relaypool_waiting_clients", "Requests of this process that wait for an outcome, or for the chain to be available before they are accepted.", nil}

	MetricSubmissions          = Metric{"relaypool_submissions_total", "Submissions that ended, by kind and outcome: completed (the transaction landed), or the code of the failure.", []string{"kind", "outcome"}}
	MetricSubmissionsFinalized = Metric{"relaypool_submissions_finalized_total", "Completed submissions whose transaction became final, by kind.", []string{"kind"}}
	MetricStages               = Metric{"relaypool_stage_duration_seconds", "Time of each stage of a submission: verify, admission, queue, simulate, sign, first_send (from accepted to the first send), confirm, execute (a swap's execution or refund, from its funding), finalize.", []string{"stage"}}
	MetricAttempts             = Metric{"relaypool_attempt_events_total", "Events of transactions: signed, early (signed while an earlier one might land), refused (by preflight), rebroadcast, expired, failed_on_chain, adopted (landed by an attempt of an earlier holder), reopened (its fork died), held (deferred for a fault of the deployment), panic (a step was given up).", []string{"event"}}
	MetricLeases               = Metric{"relaypool_lease_events_total", "Events of the leases of submissions: claimed, handed_over (at a stop), lost (another process claimed it), reaped (of a process that died), orphaned (released, because the answer to a claim was lost).", []string{"event"}}
	MetricLeaseLapses          = Metric{"relaypool_lease_lapses_total", "Times that this process could not renew its leases and let them lapse.", nil}
	MetricLandingSlots         = Metric{"relaypool_landing_slots", "Slots from the one at which a transaction's blockhash was read, at most a second before it was signed, to the one in which it landed, by lane; rpc if it had none.", []string{"lane"}}
	MetricLandingLamports      = Metric{"relaypool_landing_lamports_total", "Fees and tips of the transactions in relaypool_landing_slots, in lamports, by lane.", []string{"lane"}}
	MetricLaneExpired          = Metric{"relaypool_lane_expired_total", "Transactions that expired without landing, by lane.", []string{"lane"}}
	MetricPolls                = Metric{"relaypool_tracker_polls_total", "Status requests for signatures, by cause: slot, or notification when one brought the request forward.", []string{"cause"}}
	MetricPollSize             = Metric{"relaypool_tracker_poll_signatures", "Signatures in one status request, at most 256.", nil}
	MetricInFlight             = Metric{"relaypool_in_flight_submissions", "Submissions that this process has claimed and that have not landed.", nil}
	MetricTracked              = Metric{"relaypool_tracked_submissions", "Landed submissions that this process tracks until they are finalized.", nil}
	MetricQueuePaused          = Metric{"relaypool_queue_paused", "1 while this process claims nothing, by the reason's code; no sample while it works.", []string{"reason"}}

	MetricBacklog    = Metric{"relaypool_backlog_submissions", "Submissions of the fleet that more workers could claim: due, without an owner and not held for any reason. Autoscaling uses it.", nil}
	MetricBacklogAge = Metric{"relaypool_backlog_oldest_age_seconds", "How long the oldest submission of the backlog has been due; 0 without any. An age rather than a time, because autoscalers compare it as it is.", nil}
	MetricHeld       = Metric{"relaypool_held_submissions", "Submissions of the fleet that wait for something that more workers cannot provide, by reason, a code of the interface.", []string{"reason"}}
	MetricOpen       = Metric{"relaypool_open_submissions", "Submissions of the fleet by state: pending or processing.", []string{"state"}}

	MetricRPCCalls          = Metric{"relaypool_rpc_calls_total", "RPC calls by endpoint, method and class of answer.", []string{"endpoint", "method", "class"}}
	MetricRPCDuration       = Metric{"relaypool_rpc_call_duration_seconds", "Time of RPC calls by endpoint and method.", []string{"endpoint", "method"}}
	MetricRPCUp             = Metric{"relaypool_rpc_endpoint_up", "1 while the endpoint's breaker is closed, 0 while it is only probed.", []string{"endpoint"}}
	MetricRPCLag            = Metric{"relaypool_rpc_endpoint_lag_slots", "Slots that the endpoint is behind the best of all.", []string{"endpoint"}}
	MetricRPCLatency        = Metric{"relaypool_rpc_endpoint_latency_seconds", "Moving average of the endpoint's time to answer, by which reads choose.", []string{"endpoint"}}
	MetricRPCBreaker        = Metric{"relaypool_rpc_breaker_changes_total", "Changes of the endpoint's breaker, by the new state: closed, half_open, open.", []string{"endpoint", "state"}}
	MetricRPCSkipped        = Metric{"relaypool_rpc_rebroadcasts_skipped_total", "Rebroadcasts left out at an endpoint because its budget was spent.", []string{"endpoint"}}
	MetricRPCContradictions = Metric{"relaypool_rpc_contradictions_total", "Answers of the endpoint that others contradict, about a slot or a landed transaction.", []string{"endpoint"}}
	MetricRPCSocket         = Metric{"relaypool_rpc_websocket_connected", "1 while this process listens to the endpoint's notifications. One endpoint is enough; they only bring polls forward.", []string{"endpoint"}}
	MetricRPCNotifications  = Metric{"relaypool_rpc_notifications_total", "Notifications received.", []string{"endpoint"}}

	MetricFinalityAdvanced = Metric{"relaypool_finalized_slot_timestamp_seconds", "When the chain's finalized slot was last seen to advance; no sample while too few endpoints answer to know.", nil}
	MetricConsensus        = Metric{"relaypool_consensus", "1 for the consensus rules of the chain, tower_bft or alpenglow; no sample while they are unknown.", []string{"rules"}}

	MetricSlotDuration = Metric{"relaypool_slot_duration_seconds", "How long a slot of the chain takes: measured on the slots that two endpoints, or the only one, agree on; before, by the endpoints' performance samples or nominal.", nil}
	MetricRent         = Metric{"relaypool_rent_lamports_per_byte", "The network's rate of rent, which two endpoints report; no sample before the first reading.", nil}

	MetricPayerBalance     = Metric{"relaypool_fee_payer_balance_lamports", "The payer's last balance that could be read.", []string{"payer"}}
	MetricPayerBalanceTime = Metric{"relaypool_fee_payer_balance_timestamp_seconds", "When that balance was read. A failed reading leaves the last good one.", []string{"payer"}}
	MetricPayerInFlight    = Metric{"relaypool_fee_payer_in_flight", "Attempts of this process that the payer signed and that may still land.", []string{"payer"}}
	MetricPayerReserved    = Metric{"relaypool_fee_payer_reserved_lamports", "The cost of those attempts if they land, which is not spent twice.", []string{"payer"}}
	MetricPayerMinimum     = Metric{"relaypool_fee_payer_minimum_lamports", "The configured balance below which a payer is not used.", nil}
	MetricPayerUsable      = Metric{"relaypool_fee_payer_usable", "1 while the payer is used; 0 while it is below its minimum, refused by the chain, unknown, or its signer is not available.", []string{"payer"}}
	MetricSignerAvailable  = Metric{"relaypool_signer_available", "1 while the key service of a fee payer signs; 0 while it is only probed.", []string{"signer"}}
	MetricSignerDuration   = Metric{"relaypool_signer_call_duration_seconds", "Time of calls for a signature, by signer and outcome: signed, failed, wrong (not the fee payer's signature; never used).", []string{"signer", "outcome"}}

	MetricSpent            = Metric{"relaypool_spent_lamports_total", "Lamports that the fleet's payers have spent according to the finalized chain, by kind of transaction and cost: fee, priority_fee, tip, rent, other. Rent counts when it is paid.", []string{"kind", "cost"}}
	MetricSpentToday       = Metric{"relaypool_spent_today_lamports", "The same since midnight UTC.", []string{"kind", "cost"}}
	MetricCap              = Metric{"relaypool_spend_cap_lamports", "The configured spend caps that are set: hour, day, transfers_day.", []string{"cap"}}
	MetricCapLeft          = Metric{"relaypool_spend_cap_left_lamports", "Lamports that each cap still allows in its current window.", []string{"cap"}}
	MetricReturned         = Metric{"relaypool_returned_lamports_total", "Rent that came back with executed swaps, according to the finalized chain.", nil}
	MetricReceived         = Metric{"relaypool_received_lamports_total", "Lamports that the payers received, according to the finalized chain.", nil}
	MetricLedgerEntries    = Metric{"relaypool_ledger_entries_total", "Transactions that this process entered into the ledger, by kind: transfer, withdrawal, swap, sweep, failed, received, unknown.", []string{"kind"}}
	MetricLedgerUnknown    = Metric{"relaypool_ledger_unknown_signatures", "Transactions on the chain that one of our payers signed and the database does not know.", nil}
	MetricLedgerGaps       = Metric{"relaypool_ledger_gaps", "Places where no endpoint had the history that must be there, by payer.", []string{"payer"}}
	MetricLedgerReconciled = Metric{"relaypool_ledger_reconciled_timestamp_seconds", "When the ledger was last brought up to the finalized chain, by payer. If never, when this process first saw funds of the payer.", []string{"payer"}}
	MetricLedgerDifference = Metric{"relaypool_ledger_difference_lamports", "Lamports that the ledger does not account for, by payer. They are the part of the balance that the ledger's sums do not explain, and what our transactions cost beyond fee and rent.", []string{"payer"}}

	MetricSwaps            = Metric{"relaypool_swaps", "Swaps of the fleet that are neither executed nor refunded, by phase: funded or quoted.", []string{"phase"}}
	MetricSwapOldestFunded = Metric{"relaypool_swap_oldest_funded_timestamp_seconds", "When the oldest such swap was funded. There is no sample without any.", nil}
	MetricSwapsOverdue     = Metric{"relaypool_swaps_overdue", "Swaps of the fleet past their timeout slot that are neither executed nor refunded.", nil}
	MetricSwapsEnded       = Metric{"relaypool_swaps_ended_total", "Swaps that this process brought to their end, by outcome: executed or refunded.", []string{"outcome"}}
	MetricSwapWaits        = Metric{"relaypool_swap_waits_total", "Deferrals of swaps, by the reason of the wait.", []string{"reason"}}

	MetricRouterRequests    = Metric{"relaypool_router_requests_total", "Calls of the swap routers by router (preferred, or a fallback router's name), call (build, or in v1 of the API quote and instructions) and outcome: ok, no_route, route_rejected, or why there was no answer. Calls with the outcome busy or breaker_open were not made.", []string{"router", "call", "outcome"}}
	MetricRouterDuration    = Metric{"relaypool_router_request_duration_seconds", "Time of the calls that were made, by router and call.", []string{"router", "call"}}
	MetricRouterBreakerOpen = Metric{"relaypool_router_breaker_open", "1 while this process skips calls to a swap router because its last calls failed, and swaps have needed it within two minutes; no sample without a router.", []string{"router"}}
	MetricRouterRejected    = Metric{"relaypool_router_rejected_routes_total", "Answers of swap routers that contradict the request or ask for what is not allowed, by their fault. None was signed.", []string{"what"}}

	MetricMaintenanceRuns     = Metric{"relaypool_maintenance_runs_total", "Runs of maintenance jobs that this process led, by job and outcome: done or failed.", []string{"job", "outcome"}}
	MetricMaintenanceDuration = Metric{"relaypool_maintenance_run_duration_seconds", "Time of a run of a maintenance job, by job.", []string{"job"}}
	MetricDeleted             = Metric{"relaypool_rows_deleted_total", "Rows that retention deleted, by table.", []string{"table"}}

	MetricTreeLeaves    = Metric{"relaypool_tree_leaves", "Leaves of the pool's Merkle tree on the chain.", nil}
	MetricTreeCheck     = Metric{"relaypool_tree_self_check", "1 when the tree account agrees with itself, 0 when the profile does not fit the program.", nil}
	MetricIndexLeaves   = Metric{"relaypool_index_leaves", "Leaves that the commitment index has read.", nil}
	MetricIndexServed   = Metric{"relaypool_index_published_leaves", "Leaves whose root the chain confirmed; GET /commitments serves them.", nil}
	MetricIndexUnknown  = Metric{"relaypool_index_unknown_version_transactions", "Transactions of versions that the relay cannot decode, in the blocks that this process has read. Their bytes do not contain the tree's address.", nil}
	MetricIndexVerified = Metric{"relaypool_index_verified", "1 when all that the index has read is confirmed by the chain's root.", nil}
)

// Metrics lists all metrics, in the order of the documentation.
func Metrics() []Metric {
	return []Metric{
		MetricBuildInfo, MetricHTTPRequests, MetricHTTPDuration, MetricClientRequests, MetricWaiting,
		MetricSubmissions, MetricSubmissionsFinalized, MetricStages, MetricAttempts, MetricLandingSlots, MetricLandingLamports, MetricLaneExpired, MetricLeases, MetricLeaseLapses, MetricPolls, MetricPollSize, MetricInFlight, MetricTracked, MetricQueuePaused,
		MetricBacklog, MetricBacklogAge, MetricHeld, MetricOpen,
		MetricRPCCalls, MetricRPCDuration, MetricRPCUp, MetricRPCLag, MetricRPCLatency, MetricRPCBreaker, MetricRPCSkipped, MetricRPCContradictions, MetricRPCSocket, MetricRPCNotifications,
		MetricFinalityAdvanced, MetricConsensus, MetricSlotDuration, MetricRent, MetricPayerBalance, MetricPayerBalanceTime, MetricPayerInFlight, MetricPayerReserved, MetricPayerMinimum, MetricPayerUsable, MetricSignerAvailable, MetricSignerDuration,
		MetricSpent, MetricSpentToday, MetricReturned, MetricReceived, MetricCap, MetricCapLeft,
		MetricLedgerEntries, MetricLedgerUnknown, MetricLedgerGaps, MetricLedgerReconciled, MetricLedgerDifference,
		MetricSwaps, MetricSwapOldestFunded, MetricSwapsOverdue, MetricSwapsEnded, MetricSwapWaits,
		MetricRouterRequests, MetricRouterDuration, MetricRouterBreakerOpen, MetricRouterRejected,
		MetricMaintenanceRuns, MetricMaintenanceDuration, MetricDeleted,
		MetricTreeLeaves, MetricTreeCheck, MetricIndexLeaves, MetricIndexServed, MetricIndexUnknown, MetricIndexVerified,
	}
}
