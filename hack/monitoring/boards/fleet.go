package boards

import (
	"github.com/relaypool/relaypool/hack/monitoring/grafana"
	"github.com/relaypool/relaypool/relay/contract"
)

// Fleet is where to look first: what clients get, what waits and why, how many
// pods there are, and what the chain does.
func Fleet() *grafana.Board {
	return &grafana.Board{
		UID: "relaypool-fleet", Title: "Relaypool / Fleet",
		Description: "What clients of a RelayPool get, what waits and for what, its pods, and the chain behind it. Look here first.",
		Variables:   fleets(),
		Rows:        []grafana.Row{fleetGlance(), fleetWork(), fleetOutcomes(), fleetScaling(), fleetPool(), fleetChain(), fleetDeclared(), fleetAdapter()},
	}
}

func fleetGlance() grafana.Row {
	return grafana.Row{Title: "At a glance", Panels: []grafana.Panel{
		{
			Title: "Pods that are scraped", Kind: grafana.Numbers, Unit: grafana.Count, Width: 4, Height: 4, Below: true, Warn: 2, Alarm: 1,
			Shows: "Relays that tell Prometheus of themselves.", Good: "as many as are wanted, two or more in production.", Bad: "none: nobody is served, or nobody is scraped.", Do: "the alert RelaypoolSilent says how to tell the two apart.",
			Queries: []grafana.Query{query("{{pool}}", "count by (namespace, pool) ("+contract.MetricBuildInfo.Name+"{})")},
		},
		{
			Title: "Completed", Kind: grafana.Numbers, Unit: grafana.PerSecond, Width: 4, Height: 4,
			Shows: "Submissions that land, a second.", Good: "follows what clients send.", Bad: "0 while clients send.", Do: "look at what waits, below, and for what.",
			Queries: []grafana.Query{query("{{pool}}", total(contract.MetricSubmissions, `,outcome="completed"`))},
		},
		{
			Title: "Backlog", Kind: grafana.Numbers, Unit: grafana.Count, Width: 4, Height: 4, Warn: 50, Alarm: 500,
			Shows: "Submissions that more workers could take up now.", Good: "near 0.", Bad: "above 50 for longer than a scale-up takes: that is more than the pool's ring lets wait.", Do: "add pods, unless in-flight is full because nothing lands.",
			Queries: []grafana.Query{query("{{pool}}", once(contract.MetricBacklog))},
		},
		{
			Title: "Oldest", Kind: grafana.Numbers, Unit: grafana.Seconds, Width: 4, Height: 4, Warn: 10, Alarm: 60,
			Shows: "How long the oldest of the backlog has waited.", Good: "below a few seconds.", Bad: "a minute: clients' roots leave the ring.", Do: "the alert RelaypoolBacklogOld.",
			Queries: []grafana.Query{query("{{pool}}", once(contract.MetricBacklogAge))},
		},
		{
			Title: "Held", Kind: grafana.Numbers, Unit: grafana.Count, Width: 4, Height: 4, Warn: 1, Alarm: 50,
			Shows: "Accepted work that waits for something that more pods would not bring, swaps that wait for a price included.", Good: "none, or a few swaps.", Bad: "grows: see the reason below.", Do: "mend the reason; it goes on by itself.",
			Queries: []grafana.Query{query("{{pool}}", "sum by (namespace, pool) ("+once(contract.MetricHeld, "reason")+")")},
		},
		{
			Title: "Endpoints up", Kind: grafana.Numbers, Unit: grafana.Count, Width: 4, Height: 4, Below: true, Warn: 2, Alarm: 1,
			Shows: "RPC endpoints that some pod reaches.", Good: "all, two or more in production.", Bad: "0: nothing can be read or sent.", Do: "the alert RelaypoolEndpointsDown.",
			Queries: []grafana.Query{query("{{pool}}", "sum by (namespace, pool) ("+once(contract.MetricRPCUp, "endpoint")+")")},
		},
	}}
}

func fleetWork() grafana.Row {
	return grafana.Row{Title: "What waits", Panels: []grafana.Panel{
		{
			Title: "Backlog and held work by reason", Kind: grafana.Areas, Unit: grafana.Count,
			Shows: "The backlog, which sizes the fleet, and on top of it the work that is held, by reason.", Good: "a backlog that comes and goes, nothing held but swaps.", Bad: "held by fee_payer_empty, spend_cap_reached, chain_unavailable or pool_not_initialised: pods would not help.", Do: "the alert RelaypoolWorkHeld has what to do for each reason.",
			Queries: []grafana.Query{query("{{pool}} backlog", once(contract.MetricBacklog)), query("{{pool}} {{reason}}", once(contract.MetricHeld, "reason"))},
		},
		{
			Title: "Age of the oldest", Kind: grafana.Curves, Unit: grafana.Seconds, Warn: 10, Alarm: 60,
			Shows: "How long the oldest submission of the backlog has been due.", Good: "a second or two.", Bad: "above 60 s: roots leave the ring, and submissions fail with root_not_found.", Do: "more pods, if those that there are have no room.",
			Queries: []grafana.Query{query("{{pool}}", once(contract.MetricBacklogAge))},
		},
		{
			Title: "Open submissions", Kind: grafana.Areas, Unit: grafana.Count,
			Shows: "All that was accepted and has no outcome, by state.", Good: "follows the load.", Bad: "processing grows while the backlog does not: nothing lands, or work is held.", Do: "see reasons beside, and the time to confirmation below.",
			Queries: []grafana.Query{query("{{pool}} {{state}}", once(contract.MetricOpen, "state"))},
		},
	}}
}

func fleetOutcomes() grafana.Row {
	return grafana.Row{Title: "What clients get", Panels: []grafana.Panel{
		{
			Title: "Submissions by outcome", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "Submissions that ended, a second, by outcome; a swap's second leg is executed or refunded.", Good: "completed, nearly alone.", Bad: "any failure code that grows with the load.", Do: "there is an alert for each class: RelaypoolStaleRoots, ProgramRefuses, NotesSpentElsewhere, SubmissionsFail, RelayFault.",
			Queries: []grafana.Query{query("{{pool}} {{outcome}}", total(contract.MetricSubmissions, `,outcome!="finalized"`, "outcome"))},
		},
		{
			Title: "Share that fails", Kind: grafana.Curves, Unit: grafana.Share, Warn: 0.05, Alarm: 0.2,
			Shows: "Of all submissions that ended, those that failed.", Good: "below 1 %.", Bad: "above 5 % for a quarter of an hour.", Do: "see which outcome it is, beside.",
			Queries: []grafana.Query{query("{{pool}}", share("("+total(contract.MetricSubmissions, `,outcome!~"completed|finalized|executed|refunded"`)+" or 0 * "+total(contract.MetricSubmissions, `,outcome="completed"`)+")", total(contract.MetricSubmissions, `,outcome!~"finalized|executed|refunded"`)))},
		},
		{
			Title: "Answers by status", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "Answers to clients, a second, by HTTP status.", Good: "200 and 202; 400 and 409 are the clients' own.", Bad: "503: turned away. 500: a fault of the relay. 429 for everybody: they share one limit.", Do: "RelaypoolRequestsRefused for 503, RelaypoolRelayFault for 500; for 429 set spec.api.clientIPHeader.",
			Queries: []grafana.Query{query("{{pool}} {{status}}", total(contract.MetricHTTPRequests, ``, "status"))},
		},
		{
			Title: "Time to the first send", Kind: grafana.Curves, Unit: grafana.Seconds,
			Shows: "From the moment that a submission is accepted to its first send.", Good: "p50 below 100 ms, p99 below a second.", Bad: "seconds: work queues, or simulation is slow.", Do: "compare queue and simulate on the dashboard relay.",
			Queries: percentiles(contract.MetricStages, `,stage="first_send"`),
		},
		{
			Title: "Time to confirmation", Kind: grafana.Curves, Unit: grafana.Seconds,
			Shows: "From the moment that a submission is accepted to its confirmation on the chain.", Good: "p50 of one to two seconds.", Bad: "p99 near 30 s: clients get 202 in place of 200.", Do: "the alert RelaypoolAttemptsExpire: fees, and endpoints that forward.",
			Queries: percentiles(contract.MetricStages, `,stage="confirm"`),
		},
		{
			Title: "Time to the tokens", Kind: grafana.Curves, Unit: grafana.Seconds,
			Shows: "Of swaps, from the first leg's landing to tokens or refund.", Good: "a few seconds.", Bad: "near 80 s: they end as refunds.", Do: "see what swaps wait for on the dashboard relay.",
			Queries: percentiles(contract.MetricStages, `,stage="settle"`),
		},
	}}
}

func fleetScaling() grafana.Row {
	return grafana.Row{Title: "Pods", Panels: []grafana.Panel{
		{
			Title: "Pods wanted and ready", Kind: grafana.Curves, Unit: grafana.Count,
			Shows: "Replicas of the Deployment, those that are ready, and those that Prometheus scrapes.", Good: "all the same.", Bad: "ready below wanted for longer than a roll-out.", Do: "the condition Available says why; kubectl describe pod.",
			Queries: []grafana.Query{
				query("{{pool}} wanted", ofCluster("kube_deployment_spec_replicas", "deployment")),
				query("{{pool}} ready", ofCluster("kube_deployment_status_replicas_ready", "deployment")),
				query("{{pool}} scraped", "count by (namespace, pool) ("+contract.MetricBuildInfo.Name+"{})"),
			},
		},
		{
			Title: "Autoscaler", Kind: grafana.Curves, Unit: grafana.Count,
			Shows: "How many pods the HPA wants, how many there are, and its most. KEDA's autoscaler is called keda-hpa-NAME.", Good: "actual follows wanted within a minute; down one pod a minute.", Bad: "wanted at its most for long; no curve at all where autoscaling is declared.", Do: "raise spec.autoscaling.maxReplicas; without a curve, the condition AutoscalingActive.",
			Queries: []grafana.Query{
				query("{{pool}} wanted", ofCluster("kube_horizontalpodautoscaler_status_desired_replicas", "horizontalpodautoscaler")),
				query("{{pool}} actual", ofCluster("kube_horizontalpodautoscaler_status_current_replicas", "horizontalpodautoscaler")),
				query("{{pool}} most", ofCluster("kube_horizontalpodautoscaler_spec_max_replicas", "horizontalpodautoscaler")),
			},
		},
		{
			Title: "Versions", Kind: grafana.Curves, Unit: grafana.Count,
			Shows: "Pods by the release that they run.", Good: "one release.", Bad: "two for longer than a roll-out takes.", Do: "look for the pods that did not come up.",
			Queries: []grafana.Query{query("{{pool}} {{version}}", "count by (namespace, pool, version) ("+contract.MetricBuildInfo.Name+"{})")},
		},
	}}
}

func fleetAdapter() grafana.Row {
	return grafana.Row{Title: "External metrics, where the operator serves them", Panels: []grafana.Panel{
		{
			Title: "Requests of autoscalers", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "Requests to the operator's external metrics API, a second, by metric and outcome.", Good: "served, each autoscaler every 15 seconds.", Bad: "stale, not_ready or failed: autoscalers hold. None at all: the APIService leads elsewhere.", Do: "the alert RelayPoolBacklogUnread; the condition AutoscalingActive.",
			Queries: []grafana.Query{{Expr: "sum by (metric, outcome) (rate(" + contract.MetricOperatorExternalRequests.Name + Rate + "))", Legend: "{{metric}} {{outcome}}"}},
		},
		{
			Title: "Age of the operator's backlog readings", Kind: grafana.Curves, Unit: grafana.Seconds, Warn: 30, Alarm: 60,
			Shows: "How old the reading of each fleet's backlog is, by the operator process that has the oldest.", Good: "below 15 s.", Bad: "above 30 s: the autoscaler gets an error, and holds.", Do: "the alert RelayPoolBacklogUnread: network policies between operator and fleet.",
			Queries: []grafana.Query{query("{{pool}}", once(contract.MetricOperatorBacklogAge))},
		},
		{
			Title: "Certificate", Kind: grafana.Numbers, Unit: grafana.Seconds, Below: true, Warn: 1814400, Alarm: 259200,
			Shows: "Time until the certificate of the external metrics API expires.", Good: "months.", Bad: "below three weeks: it should have been changed.", Do: "the alert RelayPoolCertificateExpires.",
			Queries: []grafana.Query{{Expr: "min(" + contract.MetricOperatorCertificateExpiry.Name + ")", Legend: "expires"}},
		},
	}}
}

func fleetPool() grafana.Row {
	leaves := "clamp_min(deriv((" + once(contract.MetricTreeLeaves) + ")[5m:15s]), 0)"
	return grafana.Row{Title: "The pool", Panels: []grafana.Panel{
		{
			Title: "Roots leaving the ring", Kind: grafana.Curves, Unit: grafana.PerSecond,
			Shows: "Leaves that all of the pool's users add a second, each of which writes a root over the oldest of the ring's 100; and submissions that failed because theirs had gone.", Good: "no root_not_found.", Bad: "root_not_found grows: a root lives for 100 divided by the leaves a second, and proofs take longer.", Do: "the alert RelaypoolStaleRoots.",
			Queries: []grafana.Query{query("{{pool}} roots written", leaves), query("{{pool}} root_not_found", total(contract.MetricSubmissions, `,outcome="root_not_found"`))},
		},
		{
			Title: "Commitment list behind the tree", Kind: grafana.Curves, Unit: grafana.Count, Warn: 20, Alarm: 50,
			Shows: "Leaves of the tree on the chain that GET /commitments does not serve yet.", Good: "a few.", Bad: "more than 50 for minutes: clients stop using the list.", Do: "the alert RelaypoolIndexBehind.",
			Queries: []grafana.Query{
				query("{{pool}} not served", once(contract.MetricTreeLeaves)+" - "+once(contract.MetricIndexServed)),
				query("{{pool}} not read", once(contract.MetricTreeLeaves)+" - "+once(contract.MetricIndexLeaves)),
			},
		},
		{
			Title: "Checks of the tree", Kind: grafana.Curves, Unit: grafana.YesNo,
			Shows: "Whether the tree account agrees with itself under the profile, and whether the chain confirms what the index has read. 1 is yes.", Good: "both 1.", Bad: "self-check 0: the profile does not fit the program. Index 0 for minutes: an endpoint gives wrong blocks.", Do: "RelaypoolRootMismatch, RelaypoolIndexBehind.",
			Queries: []grafana.Query{
				query("{{pool}} self-check", "min by (namespace, pool) ("+contract.MetricTreeCheck.Name+"{})"),
				query("{{pool}} index", once(contract.MetricIndexVerified)),
			},
		},
	}}
}

func fleetChain() grafana.Row {
	return grafana.Row{Title: "The chain", Panels: []grafana.Panel{
		{
			Title: "RPC endpoints", Kind: grafana.Curves, Unit: grafana.YesNo,
			Shows: "1 for each endpoint that some pod reaches.", Good: "all at 1.", Bad: "one at 0 for a quarter of an hour; all at 0 at all.", Do: "RelaypoolEndpointDown, RelaypoolEndpointsDown.",
			Queries: []grafana.Query{query("{{pool}} {{endpoint}}", once(contract.MetricRPCUp, "endpoint"))},
		},
		{
			Title: "Slots behind", Kind: grafana.Curves, Unit: grafana.Slots, Warn: 50, Alarm: 300,
			Shows: "How far each endpoint is behind the best of all, as the pod sees it that sees it best.", Good: "0 to 3.", Bad: "above 300, two minutes.", Do: "tell its provider; it is asked last meanwhile.",
			Queries: []grafana.Query{query("{{pool}} {{endpoint}}", "min by (namespace, pool, endpoint) ("+contract.MetricRPCLag.Name+"{})")},
		},
		{
			Title: "Transactions that expire", Kind: grafana.Curves, Unit: grafana.Share, Warn: 0.05, Alarm: 0.1,
			Shows: "Of the transactions that were signed, those that expired without landing.", Good: "below 1 %.", Bad: "above 10 %.", Do: "the alert RelaypoolAttemptsExpire.",
			Queries: []grafana.Query{query("{{pool}}", share(total(contract.MetricAttempts, `,event="expired"`), total(contract.MetricAttempts, `,event="signed"`)))},
		},
	}}
}

func fleetDeclared() grafana.Row {
	return grafana.Row{Title: "What the operator says", Panels: []grafana.Panel{
		{
			Title: "Conditions", Kind: grafana.Table, Unit: grafana.Count, Width: 12,
			Shows: "The conditions of each RelayPool, with status and reason.", Good: "all True, and neither Stalled nor Reconciling is there.", Bad: "False; Unknown is a fact that could not be read.", Do: "kubectl describe relaypool; docs/reference/conditions.md explains each reason.",
			Queries: []grafana.Query{query("", "max by (namespace, pool, condition, status, reason) ("+contract.MetricOperatorPoolCondition.Name+"{}) == 1")},
		},
		{
			Title: "RelayPools that are not ready", Kind: grafana.Curves, Unit: grafana.Count, Width: 6, Warn: 1, Alarm: 1,
			Shows: "RelayPools of the cluster whose condition Ready is False or Unknown.", Good: "none.", Bad: "any, for longer than a quarter of an hour.", Do: "the table beside says which, and why.",
			Queries: []grafana.Query{{Expr: "max by (status) (" + contract.MetricOperatorPools.Name + `{condition="Ready",status!="True"})`, Legend: "{{status}}"}},
		},
		{
			Title: "The operator's passes", Kind: grafana.Areas, Unit: grafana.PerSecond, Width: 6,
			Shows: "Passes over RelayPools' objects, by outcome.", Good: "steady.", Bad: "failed; changed without anybody's doing.", Do: "failed: the operator's log. changed: RelayPoolObjectsFoughtOver.",
			Queries: []grafana.Query{{Expr: "sum by (outcome) (rate(" + contract.MetricOperatorPasses.Name + Rate + "))", Legend: "{{outcome}}"}},
		},
		{
			Title: "What the operator does to objects", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "Owned objects that were applied, repaired, pruned or refused, a second.", Good: "nothing, while nobody changes a RelayPool.", Bad: "repaired on the rise: somebody fights the operator.", Do: "the alert RelayPoolObjectsFoughtOver.",
			Queries: []grafana.Query{{Expr: "sum by (kind, event) (rate(" + contract.MetricOperatorObjects.Name + Rate + "))", Legend: "{{kind}} {{event}}"}},
		},
		{
			Title: "The operator's reading of the chain", Kind: grafana.Curves, Unit: grafana.Seconds, Warn: 300, Alarm: 600,
			Shows: "Age of the operator's last good reading of each pool, and how long no endpoint has answered it.", Good: "below two minutes.", Bad: "above 600 s.", Do: "the alert RelayPoolChainUnavailable.",
			Queries: []grafana.Query{
				query("{{pool}} age", once(contract.MetricOperatorChainCheckAge)),
				query("{{pool}} unavailable", once(contract.MetricOperatorChainUnavailable)),
			},
		},
		{
			Title: "Rotations and pauses", Kind: grafana.Curves, Unit: grafana.Seconds, Warn: 3600, Alarm: 21600,
			Shows: "How long a rotation of fee payers has been at its step; and RelayPools that are paused, at 1.", Good: "minutes a step, Drain longer; nothing paused.", Bad: "an hour on any step but Drain.", Do: "the alert RelayPoolRotationSlow.",
			Queries: []grafana.Query{
				query("{{pool}} {{step}}", once(contract.MetricOperatorRotationAge, "step")+" and on (namespace, pool, step) "+once(contract.MetricOperatorRotation, "step")),
				query("{{pool}} paused", once(contract.MetricOperatorPaused)),
			},
		},
	}}
}
