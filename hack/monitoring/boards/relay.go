package boards

import (
	"github.com/relaypool/relaypool/hack/monitoring/grafana"
	"github.com/relaypool/relaypool/relay/contract"
)

// Relay shows a fleet's pods, one against the other.
func Relay() *grafana.Board {
	return &grafana.Board{
		UID: "relaypool-relay", Title: "Relaypool / Relay",
		Description: "The pods of a RelayPool, one against the other: where their time goes, what they ask of the chain, and what they cost.",
		Variables:   fleets(),
		Rows:        []grafana.Row{relayWork(), relayStages(), relayHTTP(), relayRPC(), relaySwaps(), relayUpkeep(), relayProcess()},
	}
}

func relayWork() grafana.Row {
	return grafana.Row{Title: "Work in hand", Panels: []grafana.Panel{
		{
			Title: "In flight", Kind: grafana.Curves, Unit: grafana.Count,
			Shows: "Submissions that each pod has taken up and that have not landed.", Good: "spread evenly, well below spec.concurrency and spec.swap.concurrency together.", Bad: "at both together for long on all: the chain is the bottleneck, or the pods are too few.", Do: "compare with the time to confirmation on the dashboard fleet.",
			Queries: []grafana.Query{query("{{pod}}", gauge(contract.MetricInFlight))},
		},
		{
			Title: "Followed to finality", Kind: grafana.Curves, Unit: grafana.Count,
			Shows: "Landed submissions that each pod follows until they are finalized.", Good: "about the rate times 13 seconds.", Bad: "grows while nothing new lands: finality stalls.", Do: "look at the endpoints' lag.",
			Queries: []grafana.Query{query("{{pod}}", gauge(contract.MetricWatching))},
		},
		{
			Title: "Clients that wait", Kind: grafana.Curves, Unit: grafana.Count,
			Shows: "Requests of each pod that wait for an outcome.", Good: "spread evenly.", Bad: "all on one pod: the Service, or a proxy, sends clients to one.", Do: "look at the proxy's balancing.",
			Queries: []grafana.Query{query("{{pod}}", gauge(contract.MetricWaiting))},
		},
		{
			Title: "Attempts by event", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "What happens to transactions: signed, rebroadcast, expired, refused by preflight, failed on the chain, adopted, reopened, held, given up.", Good: "signed, and few others.", Bad: "expired near signed; panic at all.", Do: "RelaypoolAttemptsExpire; RelaypoolRelayFault for panic; RelaypoolForkDied for reopened.",
			Queries: []grafana.Query{query("{{event}}", total(contract.MetricAttempts, ``, "event"))},
		},
		{
			Title: "Leases by event", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "Submissions by what happened to their leases.", Good: "claimed alone, handed_over in a roll-out.", Bad: "reaped: a pod died. lapsed: the database hung, or a pod was paused.", Do: "RelaypoolProcessDied; for lapsed, the database's own latency.",
			Queries: []grafana.Query{query("{{event}}", total(contract.MetricLeases, ``, "event"))},
		},
		{
			Title: "Pods that hold back", Kind: grafana.Curves, Unit: grafana.YesNo,
			Shows: "1 while a pod takes nothing up, with the reason.", Good: "no curve.", Bad: "any for longer than a minute.", Do: "RelaypoolWorkHeld has what to do for each reason.",
			Queries: []grafana.Query{query("{{pod}} {{reason}}", gauge(contract.MetricHolding, "reason"))},
		},
	}}
}

func relayStages() grafana.Row {
	return grafana.Row{Title: "Where the time goes", Panels: []grafana.Panel{
		{
			Title: "Stages, p95", Kind: grafana.Curves, Unit: grafana.Seconds, Width: 12,
			Shows: "The time of each stage of a submission, from its verification to its finality.", Good: "confirm of a second or two is the chain's, finalize of some 13 s too; all others below 100 ms.", Bad: "queue grows: no room. simulate grows: slow endpoints. settle near 80 s: refunds.", Do: "look at the stage that grew first.",
			Queries: []grafana.Query{query("{{stage}}", quantile(0.95, contract.MetricStages, ``, "stage"))},
		},
		{
			Title: "Verification and admission", Kind: grafana.Curves, Unit: grafana.Seconds, Width: 12,
			Shows: "How long proofs take to verify, and a submission to be admitted: verified, checked against the chain and written.", Good: "verify of 1 to 3 ms, admission below 50 ms.", Bad: "verify above 10 ms: pods lack processor time. admission alone: the database is slow to commit.", Do: "raise spec.template.resources, or look at the database's disk.",
			Queries: []grafana.Query{
				query("verify p50", quantile(0.5, contract.MetricStages, `,stage="verify"`)), query("verify p99", quantile(0.99, contract.MetricStages, `,stage="verify"`)),
				query("admission p50", quantile(0.5, contract.MetricStages, `,stage="admission"`)), query("admission p99", quantile(0.99, contract.MetricStages, `,stage="admission"`)),
			},
		},
	}}
}

func relayHTTP() grafana.Row {
	return grafana.Row{Title: "HTTP", Panels: []grafana.Panel{
		{
			Title: "Requests by route", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "Requests answered, a second, by method and route.", Good: "what your clients do.", Bad: "a route that grows alone: one client polls, or probes.", Do: "limit by address, spec.api.requestsPerMinute.",
			Queries: []grafana.Query{query("{{method}} {{route}}", total(contract.MetricHTTPRequests, ``, "method", "route"))},
		},
		{
			Title: "Refusals by route and status", Kind: grafana.Curves, Unit: grafana.PerSecond,
			Shows: "Answers of 400 and above, a second.", Good: "few 400 and 409, which are the clients' own.", Bad: "500 at all; 503 in numbers; 401 or 429 for everybody.", Do: "the page of RelaypoolRequestsRefused has the codes.",
			Queries: []grafana.Query{query("{{route}} {{status}}", total(contract.MetricHTTPRequests, `,status=~"[45].."`, "route", "status"))},
		},
		{
			Title: "Time to answer, p95", Kind: grafana.Curves, Unit: grafana.Seconds,
			Shows: "How long answers take by route, waits for outcomes included.", Good: "GET routes below 50 ms; POST as long as the chain takes, or as the client asked.", Bad: "GET routes above a second: the database is slow.", Do: "look at the database.",
			Queries: []grafana.Query{query("{{method}} {{route}}", quantile(0.95, contract.MetricHTTPDuration, ``, "method", "route"))},
		},
	}}
}

func relayRPC() grafana.Row {
	return grafana.Row{Title: "RPC", Panels: []grafana.Panel{
		{
			Title: "Calls by class of answer", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "RPC calls, a second, by endpoint and class.", Good: "ok.", Bad: "rate_limited: the plan is too small. rejected: URL or key is wrong. timeout, connection, server_error: the provider.", Do: "set the endpoint's requestsPerSecond to its plan; correct its Secret; tell the provider.",
			Queries: []grafana.Query{query("{{endpoint}} {{class}}", total(contract.MetricRPCCalls, ``, "endpoint", "class"))},
		},
		{
			Title: "Calls by method", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "RPC calls, a second, by method: what the plan is spent on.", Good: "sendTransaction and getSignatureStatuses lead under load.", Bad: "getBlock or getSignaturesForAddress for long: the index or the ledger catches up.", Do: "give those to an endpoint with the role archive.",
			Queries: []grafana.Query{query("{{method}}", total(contract.MetricRPCCalls, ``, "method"))},
		},
		{
			Title: "Time of calls, p95", Kind: grafana.Curves, Unit: grafana.Seconds,
			Shows: "How long calls take by endpoint.", Good: "below 200 ms.", Bad: "one far above the others.", Do: "nothing at once: calls go elsewhere. Tell its provider.",
			Queries: []grafana.Query{query("{{endpoint}}", quantile(0.95, contract.MetricRPCDuration, ``, "endpoint"))},
		},
		{
			Title: "Latency by which reads choose", Kind: grafana.Curves, Unit: grafana.Seconds,
			Shows: "The moving average of each endpoint's time to answer, as each pod sees it.", Good: "close together, or the one that you prefer below.", Bad: "the paid endpoint above the free one.", Do: "the order in spec.solana.endpoints decides among equals alone.",
			Queries: []grafana.Query{query("{{pod}} {{endpoint}}", gauge(contract.MetricRPCLatency, "endpoint"))},
		},
		{
			Title: "Breakers and rebroadcasts", Kind: grafana.Curves, Unit: grafana.PerSecond,
			Shows: "Changes of the endpoints' breakers, and rebroadcasts that were left out because a budget was spent.", Good: "none.", Bad: "an endpoint that comes and goes; skipped steadily.", Do: "tell the provider; raise requestsPerSecond, or the plan behind it.",
			Queries: []grafana.Query{query("{{endpoint}} {{state}}", total(contract.MetricRPCBreaker, ``, "endpoint", "state")), query("{{endpoint}} skipped", total(contract.MetricRPCSkipped, ``, "endpoint")), query("{{endpoint}} contradicted", total(contract.MetricRPCContradictions, ``, "endpoint"))},
		},
		{
			Title: "WebSockets", Kind: grafana.Curves, Unit: grafana.Count,
			Shows: "Endpoints whose notifications each pod listens to, and notifications a second.", Good: "one or more, and notifications while the pool is used.", Bad: "0 everywhere: outcomes come up to a slot later, and nothing else.", Do: "correct webSocket, or set it to Disabled.",
			Queries: []grafana.Query{query("{{pod}} connected", "sum by (namespace, pool, pod) ("+contract.MetricRPCSocket.Name+"{})"), query("{{pod}} notifications/s", each(contract.MetricRPCNudges, ``))},
		},
		{
			Title: "Questions for signatures", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "Questions for the fate of signatures, a second, by what caused them.", Good: "at most one a slot and pod.", Bad: "no nudges although a WebSocket is connected.", Do: "its notifications do not come: use another endpoint's.",
			Queries: []grafana.Query{query("{{cause}}", total(contract.MetricPolls, ``, "cause"))},
		},
		{
			Title: "Signatures in a question", Kind: grafana.Curves, Unit: grafana.Count,
			Shows: "How many signatures a question asks for, on average; 256 is the most.", Good: "grows with the load, so that calls do not.", Bad: "at 256 for long: outcomes are late.", Do: "more pods share them.",
			Queries: []grafana.Query{query("{{pod}}", share("sum by (namespace, pool, pod) (rate("+contract.MetricPollSize.Name+"_sum{}"+Rate+"))", "sum by (namespace, pool, pod) (rate("+contract.MetricPollSize.Name+"_count{}"+Rate+"))"))},
		},
	}}
}

func relaySwaps() grafana.Row {
	return grafana.Row{Title: "Swap router", Panels: []grafana.Panel{
		{
			Title: "Router calls by outcome", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "Calls of the swap router, a second, by call and outcome.", Good: "ok, and no_route where there is none.", Bad: "rate_limited, busy: the plan is too small. rejected: the key. hostile: see beside.", Do: "RelaypoolRouterFails, RelaypoolRouterAway.",
			Queries: []grafana.Query{query("{{call}} {{outcome}}", total(contract.MetricRouterRequests, ``, "call", "outcome"))},
		},
		{
			Title: "Time of router calls, p95", Kind: grafana.Curves, Unit: grafana.Seconds,
			Shows: "How long the router takes by call.", Good: "below 500 ms.", Bad: "near spec.swap.router.timeoutMilliseconds: quotes are old when they arrive.", Do: "tell the provider, or use another.",
			Queries: []grafana.Query{query("{{call}}", quantile(0.95, contract.MetricRouterDuration, ``, "call"))},
		},
		{
			Title: "What swaps wait for", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "Times that a swap was put off, a second, by reason.", Good: "swap_price now and then: the market is below a user's minimum.", Bad: "router_unavailable, router_hostile, swap_execution_failed.", Do: "the alert RelaypoolRefundsNearExecutions has what to do for each.",
			Queries: []grafana.Query{query("{{reason}}", total(contract.MetricSwapWaits, ``, "reason"))},
		},
		{
			Title: "Router left alone", Kind: grafana.Curves, Unit: grafana.YesNo,
			Shows: "1 while a pod leaves the router alone because its last calls failed.", Good: "0.", Bad: "1 on every pod for minutes: swaps end as refunds.", Do: "RelaypoolRouterAway.",
			Queries: []grafana.Query{query("{{pod}}", gauge(contract.MetricRouterBreakerOpen))},
		},
		{
			Title: "Hostile answers", Kind: grafana.Curves, Unit: grafana.PerSecond,
			Shows: "Answers of the router that contradict the question, or want what it may not have, by what. None is signed.", Good: "none.", Bad: "any.", Do: "RelaypoolRouterHostile: stop using it until its provider has explained it.",
			Queries: []grafana.Query{query("{{what}}", total(contract.MetricRouterHostile, ``, "what"))},
		},
	}}
}

func relayUpkeep() grafana.Row {
	return grafana.Row{Title: "Upkeep", Panels: []grafana.Panel{
		{
			Title: "Runs of upkeep", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "Runs of upkeep, a second, by job and outcome; one pod leads.", Good: "done, steadily.", Bad: "failed; no runs on any pod.", Do: "the log says why; without runs look at the database.",
			Queries: []grafana.Query{query("{{job}} {{outcome}}", total(contract.MetricUpkeepRuns, ``, "job", "outcome"))},
		},
		{
			Title: "Time of upkeep, p95", Kind: grafana.Curves, Unit: grafana.Seconds,
			Shows: "How long a run of each job takes.", Good: "seconds.", Bad: "grows from day to day: rows pile up.", Do: "RelaypoolRetentionBehind.",
			Queries: []grafana.Query{query("{{job}}", quantile(0.95, contract.MetricUpkeepDuration, ``, "job"))},
		},
		{
			Title: "Rows deleted", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "Rows that retention deletes, a second, by table.", Good: "as many as came in a retention ago.", Bad: "0 for a day while submissions finish.", Do: "RelaypoolRetentionBehind.",
			Queries: []grafana.Query{query("{{table}}", total(contract.MetricDeleted, ``, "table"))},
		},
	}}
}

func relayProcess() grafana.Row {
	return grafana.Row{Title: "Processes", Panels: []grafana.Panel{
		{
			Title: "Processor", Kind: grafana.Curves, Unit: grafana.Processors,
			Shows: "Processor time that each pod uses.", Good: "well below its request.", Bad: "at its limit: verification waits.", Do: "raise spec.template.resources, or add pods.",
			Queries: []grafana.Query{query("{{pod}}", "sum by (namespace, pool, pod) (rate(process_cpu_seconds_total{}"+Rate+"))")},
		},
		{
			Title: "Memory", Kind: grafana.Curves, Unit: grafana.Bytes,
			Shows: "Resident memory of each pod.", Good: "flat under a flat load.", Bad: "grows for hours, or nears its limit.", Do: "raise the limit; report it if it grows without end.",
			Queries: []grafana.Query{query("{{pod}}", "max by (namespace, pool, pod) (process_resident_memory_bytes{})")},
		},
		{
			Title: "Goroutines and files", Kind: grafana.Curves, Unit: grafana.Count,
			Shows: "Goroutines and open files of each pod.", Good: "follow the clients that wait.", Bad: "grow while nobody waits.", Do: "report it, with a profile if you have one.",
			Queries: []grafana.Query{query("{{pod}} goroutines", "max by (namespace, pool, pod) (go_goroutines{})"), query("{{pod}} files", "max by (namespace, pool, pod) (process_open_fds{})")},
		},
		{
			Title: "Garbage collection", Kind: grafana.Curves, Unit: grafana.Share, Warn: 0.01, Alarm: 0.05,
			Shows: "Share of the time that each pod stands still for garbage collection.", Good: "below 0.1 %.", Bad: "above 1 %: memory is too tight.", Do: "raise the memory of spec.template.resources.",
			Queries: []grafana.Query{query("{{pod}}", "sum by (namespace, pool, pod) (rate(go_gc_duration_seconds_sum{}"+Rate+"))")},
		},
		{
			Title: "Builds", Kind: grafana.Table, Unit: grafana.Count,
			Shows: "What each pod runs.", Good: "one version and revision.", Bad: "two for longer than a roll-out.", Do: "look for the pods that did not come up.",
			Queries: []grafana.Query{query("", "max by (namespace, pool, pod, version, revision) ("+contract.MetricBuildInfo.Name+"{})")},
		},
	}}
}
