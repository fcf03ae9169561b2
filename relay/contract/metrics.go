package contract

// Metric is one of the relay's own metrics.
type Metric struct {
	// Name is in Prometheus' form; one that ends with _total is a counter.
	Name string
	// Help says what it counts; Do says when to look at it, and what to do then.
	Help, Do string
	Labels   []string
}

// The relay's metrics. Labels take values from fixed sets, the configured names
// of endpoints and the public keys of payers; nothing of a request's content is
// among them. Figures of the fleet come from the database and are the same on
// every process.
var (
	MetricBuildInfo = Metric{"relaypool_build_info", "Always 1; the labels tell what runs.",
		"Two versions for longer than a roll-out takes: look for the pods that did not come up.", []string{"version", "revision"}}

	MetricHTTPRequests = Metric{"relaypool_http_requests_total", "Requests answered, by route and status.",
		"500 is a fault of the relay: the log has it. 503: GET /health says what is missing. 429: clients share one limit, see the client IP header.", []string{"route", "method", "status"}}
	MetricHTTPDuration = Metric{"relaypool_http_request_duration_seconds", "Time to answer, waits for outcomes included.",
		"GET routes above a second: the database is slow.", []string{"route", "method"}}
	MetricWaiting = Metric{"relaypool_waiting_clients", "Requests of this process that wait for an outcome.",
		"None; it shows what a drain has to answer.", nil}

	MetricSubmissions = Metric{"relaypool_submissions_total", "Submissions done, by kind and outcome: completed and later finalized, each counted, or the code of the failure.",
		"internal: report it. root_not_found on the rise: the pool is busier than its ring is long, or the queue waits.", []string{"kind", "outcome"}}
	MetricStages = Metric{"relaypool_stage_duration_seconds", "Time of each stage of a submission: verify, admission, queue, simulate, sign, first_send (from accepted to the first send), confirm, settle (a swap's second leg, from the first one's landing), finalize.",
		"first_send on the rise while queue is not: look at simulate and at the RPC's latency. queue on the rise: more processes, unless work is held.", []string{"stage"}}
	MetricAttempts = Metric{"relaypool_attempts_total", "What happened to transactions, by event: signed, refused (by preflight), rebroadcast, expired, failed_on_chain, adopted (landed by an attempt of an earlier holder), reopened (its fork died), held (put off for the deployment's sake), panic (a step was given up).",
		"expired on the rise: transactions do not land, so raise the priority fee's cap or look at the endpoints. reopened: a fork died under confirmed transactions; nothing is lost. panic: report the log line.", []string{"event"}}
	MetricLeases = Metric{"relaypool_leases_total", "Submissions by what happened to their leases: claimed, handed_over (at a stop), lost (another process took them over), reaped (freed from a process that died), stray (given back, since the answer to a claim was lost); and lapsed, the times that this process could not keep its own.",
		"reaped: a process died without handing over; look why. lapsed: the database hung, or the process was paused.", []string{"event"}}
	MetricPolls = Metric{"relaypool_tracker_polls_total", "Questions for the fate of signatures, by cause: slot, or nudge when a notification brought it forward.",
		"No nudges although endpoints have WebSockets: see relaypool_rpc_websocket_connected.", []string{"cause"}}
	MetricPollSize = Metric{"relaypool_tracker_poll_signatures", "Signatures asked for in one question, at most 256.",
		"None; it shows how well questions are batched.", nil}
	MetricInFlight = Metric{"relaypool_in_flight_submissions", "Submissions that this process has taken up and that have not landed.",
		"At its concurrency for long: the chain is the bottleneck, or the process is too small.", nil}
	MetricWatching = Metric{"relaypool_watched_submissions", "Landed submissions that this process follows until they are finalized.",
		"Growing while nothing new lands: finality stalls, or the endpoints do not tell of it.", nil}
	MetricHolding = Metric{"relaypool_holding", "1 while this process takes nothing up, by the reason's code; no sample while it works.",
		"Mend the reason, as with relaypool_held_submissions; the process tries again by itself.", []string{"reason"}}

	MetricBacklog = Metric{"relaypool_backlog_jobs", "Submissions of the fleet that more workers could take up: due, held by no process and by no reason. What scales the fleet.",
		"Above 0 for minutes: no process has room or lives; add some.", nil}
	MetricBacklogAge = Metric{"relaypool_backlog_oldest_age_seconds", "How long the first of them has been due; 0 without any.",
		"Above a minute: clients' roots are leaving the ring. Look whether processes run, and at relaypool_in_flight_submissions.", nil}
	MetricHeld = Metric{"relaypool_held_submissions", "Submissions of the fleet that wait for something that more workers would not bring, by reason, a code of the interface.",
		"Mend the reason: fee_payer_empty by funding, spend_cap_reached by raising the cap, chain_unavailable at the endpoints. They go on by themselves.", []string{"reason"}}
	MetricOpen = Metric{"relaypool_submissions_open", "Submissions of the fleet by state: pending or processing.",
		"None; it shows load.", []string{"state"}}

	MetricRPCCalls = Metric{"relaypool_rpc_calls_total", "RPC calls by endpoint, method and class of answer.",
		"rate_limited: set the endpoint's requestsPerSecond to what its plan gives. rejected: its URL or key is wrong.", []string{"endpoint", "method", "class"}}
	MetricRPCDuration = Metric{"relaypool_rpc_call_duration_seconds", "Time of RPC calls by endpoint and method.",
		"One endpoint far above the others: calls go elsewhere by themselves; tell its provider.", []string{"endpoint", "method"}}
	MetricRPCUp = Metric{"relaypool_rpc_endpoint_up", "1 while the endpoint's breaker is closed, 0 while it is only probed.",
		"0: GET /health says why. All at 0: nothing new is taken until one answers.", []string{"endpoint"}}
	MetricRPCLag = Metric{"relaypool_rpc_endpoint_lag_slots", "Slots that the endpoint is behind the best of all.",
		"Above some tens for minutes: its node has fallen behind; tell its provider.", []string{"endpoint"}}
	MetricRPCLatency = Metric{"relaypool_rpc_endpoint_latency_seconds", "Moving average of the endpoint's time to answer, by which reads choose.",
		"None; see relaypool_rpc_call_duration_seconds.", []string{"endpoint"}}
	MetricRPCBreaker = Metric{"relaypool_rpc_breaker_changes_total", "Changes of the endpoint's breaker, by the new state: closed, half_open, open.",
		"Many a minute: the endpoint comes and goes; tell its provider.", []string{"endpoint", "state"}}
	MetricRPCSkipped = Metric{"relaypool_rpc_rebroadcasts_skipped_total", "Rebroadcasts left out at an endpoint because its budget was spent.",
		"Steadily on the rise: raise requestsPerSecond, or the plan behind it.", []string{"endpoint"}}
	MetricRPCContradictions = Metric{"relaypool_rpc_contradictions_total", "What the endpoint said and others say otherwise: of a slot, or of what landed.",
		"Any for minutes: it or the other one is wrong. GET /health names both: compare with a third one, and remove the one that lies.", []string{"endpoint"}}
	MetricRPCSocket = Metric{"relaypool_rpc_websocket_connected", "1 while this process listens to the endpoint's notifications. One endpoint is enough; they only bring polls forward.",
		"0 at all: answers come up to a slot later. Correct websocketURL, or set it to none.", []string{"endpoint"}}
	MetricRPCNudges = Metric{"relaypool_rpc_nudges_total", "Notifications received.",
		"None, while the endpoint is connected and the pool is used: its notifications do not come.", []string{"endpoint"}}

	MetricPayerBalance = Metric{"relaypool_fee_payer_balance_lamports", "The payer's last balance that could be read.",
		"Divide by 1800000 for the transactions left: fund it before that is a night's worth.", []string{"payer"}}
	MetricPayerAge = Metric{"relaypool_fee_payer_balance_age_seconds", "Age of that reading; a failed one leaves the last good one, growing older.",
		"Above 120: the endpoints do not answer; see relaypool_rpc_endpoint_up.", []string{"payer"}}
	MetricPayerInFlight = Metric{"relaypool_fee_payer_in_flight", "Attempts of this process that the payer signed and that may still land.",
		"None; it shows how work is spread.", []string{"payer"}}
	MetricPayerReserved = Metric{"relaypool_fee_payer_reserved_lamports", "What those would cost, which is not spent twice.",
		"None; a payer is dry when its balance less this is below the minimum.", []string{"payer"}}
	MetricPayerMinimum = Metric{"relaypool_fee_payer_minimum_lamports", "Balance below which a payer is not chosen from, as it is configured.",
		"None; what a payer holds above it is what can be spent.", nil}
	MetricPayerUsable = Metric{"relaypool_fee_payer_usable", "1 while the payer is chosen from; 0 while it is dry, refused by the chain, or unknown.",
		"0: fund it. All at 0: work is held until one is funded.", []string{"payer"}}

	MetricSpent = Metric{"relaypool_spent_lamports_total", "Lamports that the fleet's payers have spent by the finalized chain, by kind of transaction and cost: fee, priority_fee, rent, other. Rent counts as it is paid.",
		"other above 0: a payer's key is used elsewhere, or the ledger has a gap; run relay ledger.", []string{"kind", "cost"}}
	MetricSpentToday = Metric{"relaypool_spent_today_lamports", "The same since midnight UTC.",
		"Compare with the day before; transfer pays no fee to the pool, so a rise of it is somebody spending your lamports.", []string{"kind", "cost"}}
	MetricCap = Metric{"relaypool_spend_cap_lamports", "The configured spend caps that are set: hour, day, transfers_day.",
		"None; it is the other half of what is left.", []string{"cap"}}
	MetricCapLeft = Metric{"relaypool_spend_cap_left_lamports", "What each cap leaves to be spent in its window now.",
		"Near 0: new work is refused soon. Find out who sends it, or raise the cap.", []string{"cap"}}
	MetricReturned = Metric{"relaypool_returned_lamports_total", "Rent that came back with swaps that were executed, by the finalized chain: of what relaypool_spent_lamports_total tells as rent, this much was lent.",
		"None; what a swap costs for good is its rent less this.", nil}
	MetricReceived = Metric{"relaypool_received_lamports_total", "Lamports that the payers received, by the finalized chain.",
		"None; it shows funding.", nil}
	MetricLedgerEntries = Metric{"relaypool_ledger_entries_total", "Transactions that this process entered into the ledger, by kind: transfer, withdrawal, swap, sweep (relay sweep moved lamports between keys of yours), failed, received, unknown.",
		"unknown: see relaypool_ledger_unknown_signatures.", []string{"kind"}}
	MetricLedgerUnknown = Metric{"relaypool_ledger_unknown_signatures", "Transactions on the chain that a payer of ours signed and the database does not know.",
		"Above 0: somebody else holds the key, or rows were lost. Move the funds to a new key first, then look.", nil}
	MetricLedgerGaps = Metric{"relaypool_ledger_gaps", "Places where no endpoint had the history that must be there, by payer.",
		"Above 0: an endpoint's history is short; add an archive. relay ledger says how many lamports it hides.", []string{"payer"}}
	MetricLedgerAge = Metric{"relaypool_ledger_unreconciled_age_seconds", "Time since the ledger was last brought up to the finalized chain, by payer; where it never was, since this process first saw funds of the payer.",
		"Above 600: the endpoints do not give the payer's history, or no process leads upkeep.", []string{"payer"}}
	MetricLedgerDifference = Metric{"relaypool_ledger_difference_lamports", "Lamports that the ledger does not account for, by payer: what its sums do not explain of the balance, and what transactions of ours cost beyond fee and rent.",
		"Not 0: run relay ledger; a transaction that is not understood, or rows that were changed by hand.", []string{"payer"}}

	MetricSwaps = Metric{"relaypool_swaps", "Swaps of the fleet whose second leg is not settled, by phase: funded or quoted.",
		"funded on the rise: no price meets the users' minimums, or the router does not answer; see relaypool_swap_waits_total.", []string{"phase"}}
	MetricSwapAge = Metric{"relaypool_swap_oldest_age_seconds", "Time since the oldest of them was funded; 0 without any.",
		"Above 120: the timeout, 200 slots, is over, and the refund does not land; run relay swaps.", nil}
	MetricSwapsOverdue = Metric{"relaypool_swaps_overdue", "Swaps of the fleet past their timeout slot that are neither executed nor refunded: users' lamports in a swap state that they cannot spend.",
		"Above 0 for minutes: run relay swaps, which says what each waits for.", nil}
	MetricSwapsSettled = Metric{"relaypool_swaps_settled_total", "Swaps that this process brought to their end, by outcome: executed (tokens at the recipient) or refunded (lamports at his wallet).",
		"refunded near executed: minimums are too tight for the market, or the router is down; see relaypool_swap_waits_total.", []string{"outcome"}}
	MetricSwapWaits = Metric{"relaypool_swap_waits_total", "Times that a swap was put off, by reason: what it waited for.",
		"price: the market is below the users' minimums, and nothing is to be done. Others: see relaypool_router_requests_total.", []string{"reason"}}

	MetricRouterRequests = Metric{"relaypool_router_requests_total", "Calls of the swap router by call (quote, instructions) and outcome: ok, no_route, hostile, or why there was no answer; busy and breaker_open were not made.",
		"rate_limited: the API key's plan is too small; set --router-requests-per-second to what it gives. rejected: its URL or key is wrong. busy: swaps wait for one another; raise the plan. bad_response: the URL is another service's, or the API has changed.", []string{"call", "outcome"}}
	MetricRouterDuration = Metric{"relaypool_router_request_seconds", "Time of those that were made, by call.",
		"Near --router-timeout: quotes are old when they arrive; tell the provider, or use another.", []string{"call"}}
	MetricRouterBreakerOpen = Metric{"relaypool_router_breaker_open", "1 while this process leaves the swap router alone because its last calls failed; no sample without a router.",
		"1 for a minute: swaps that are under way will be refunded. See relaypool_router_requests_total for why.", nil}
	MetricRouterHostile = Metric{"relaypool_router_hostile_total", "Answers of the swap router that contradict the question or want what it may not have, by what. None was signed.",
		"Above 0: the router is broken or malicious. Use another, or none by an empty --router-url, which refunds what is under way, until its provider has explained it.", []string{"what"}}

	MetricUpkeepRuns = Metric{"relaypool_upkeep_runs_total", "Runs of upkeep that this process led, by job and outcome: done or failed.",
		"failed: the log says why. No runs on any process for several periods: no process leads.", []string{"job", "outcome"}}
	MetricUpkeepDuration = Metric{"relaypool_upkeep_duration_seconds", "Time of a run of upkeep, by job.",
		"Growing from day to day: rows pile up; see relaypool_rows_deleted_total.", []string{"job"}}
	MetricDeleted = Metric{"relaypool_rows_deleted_total", "Rows that retention deleted, by table.",
		"0 for a day, with submissions finishing longer ago than --retention: retention does not run.", []string{"table"}}

	MetricTreeLeaves = Metric{"relaypool_tree_leaves", "Leaves of the pool's Merkle tree on the chain.",
		"Near 4294967296: the tree is full.", nil}
	MetricTreeCheck = Metric{"relaypool_tree_self_check", "1 when the tree account agrees with itself, 0 when the profile does not fit the program.",
		"0: correct the profile, or --root-ring. Until then roots are judged by simulation.", nil}
	MetricIndexLeaves = Metric{"relaypool_index_leaves", "Leaves that the commitment index has read.",
		"Behind relaypool_tree_leaves for minutes: the endpoints' history is short; add an archive.", nil}
	MetricIndexServed = Metric{"relaypool_index_published_leaves", "Leaves whose root the chain confirmed: what GET /commitments serves.",
		"More than 50 behind relaypool_tree_leaves: clients stop using the list.", nil}
	MetricIndexVerified = Metric{"relaypool_index_verified", "1 when all that the index has read is confirmed by the chain's root.",
		"0 for minutes: an endpoint gives blocks that the chain did not keep.", nil}
)

// Metrics lists all of them, in the order of the documentation.
func Metrics() []Metric {
	return []Metric{
		MetricBuildInfo, MetricHTTPRequests, MetricHTTPDuration, MetricWaiting,
		MetricSubmissions, MetricStages, MetricAttempts, MetricLeases, MetricPolls, MetricPollSize, MetricInFlight, MetricWatching, MetricHolding,
		MetricBacklog, MetricBacklogAge, MetricHeld, MetricOpen,
		MetricRPCCalls, MetricRPCDuration, MetricRPCUp, MetricRPCLag, MetricRPCLatency, MetricRPCBreaker, MetricRPCSkipped, MetricRPCContradictions, MetricRPCSocket, MetricRPCNudges,
		MetricPayerBalance, MetricPayerAge, MetricPayerInFlight, MetricPayerReserved, MetricPayerMinimum, MetricPayerUsable,
		MetricSpent, MetricSpentToday, MetricReturned, MetricReceived, MetricCap, MetricCapLeft,
		MetricLedgerEntries, MetricLedgerUnknown, MetricLedgerGaps, MetricLedgerAge, MetricLedgerDifference,
		MetricSwaps, MetricSwapAge, MetricSwapsOverdue, MetricSwapsSettled, MetricSwapWaits,
		MetricRouterRequests, MetricRouterDuration, MetricRouterBreakerOpen, MetricRouterHostile,
		MetricUpkeepRuns, MetricUpkeepDuration, MetricDeleted,
		MetricTreeLeaves, MetricTreeCheck, MetricIndexLeaves, MetricIndexServed, MetricIndexVerified,
	}
}
