package monitoring_test

// A trial is two fleets that differ from the healthy one in the cause of one alert.
type trial struct {
	// faulty are the changed series of the fleet in which the alert fires; * means that there are
	// no series.
	faulty string
	// fires are the alerts that fire then, with their identifying labels: the alert itself and
	// those that accompany it. The value is the number in the alert's text.
	fires map[string]string
	// justBelow are the changed series of the fleet in which the alert just does not fire;
	// belowFires are the other alerts that fire with these series.
	justBelow  string
	belowFires map[string]string
	// at is the time at which both fleets are tested; 40m by default.
	at string
}

func only(alert string) map[string]string { return map[string]string{alert: ""} }

// healthy has the series of a fleet of two healthy pods, a sample a minute for more than
// seven hours. The fleet's labels are inserted after {.
const healthy = `
relaypool_backlog_submissions{,pod="a"} 3x430
relaypool_backlog_submissions{,pod="b"} 3x430
relaypool_backlog_oldest_age_seconds{,pod="a"} 2x430
relaypool_held_submissions{,pod="a",reason="fee_payer_empty"} 0x430
relaypool_held_submissions{,pod="a",reason="swap_price"} 4x430
relaypool_held_submissions{,pod="a",reason="no_route"} 4x430
relaypool_swaps_overdue{,pod="a"} 0x430
relaypool_http_requests_total{,pod="a",route="/transact",method="POST",status="200"} 0+30x430
relaypool_http_requests_total{,pod="a",route="/transact",method="POST",status="503"} 0+1x430
relaypool_submissions_total{,pod="a",kind="transfer",outcome="completed"} 0+30x430
relaypool_submissions_finalized_total{,pod="a",kind="transfer"} 0+30x430
relaypool_attempt_events_total{,pod="a",event="signed"} 0+60x430
relaypool_attempt_events_total{,pod="a",event="expired"} 0+1x430
relaypool_lease_events_total{,pod="a",event="claimed"} 0+60x430
relaypool_lease_events_total{,pod="a",event="reaped"} 2x430
relaypool_maintenance_runs_total{,pod="b",job="retention",outcome="done"} 0+1x430
relaypool_fee_payer_usable{,pod="a",payer="p"} 1x430
relaypool_fee_payer_usable{,pod="b",payer="p"} 1x430
relaypool_fee_payer_usable{,pod="a",payer="q"} 1x430
relaypool_fee_payer_balance_lamports{,pod="a",payer="p"} 4000000000x430
relaypool_fee_payer_balance_lamports{,pod="b",payer="p"} 4000000000x430
relaypool_fee_payer_balance_lamports{,pod="a",payer="q"} 4000000000x430
relaypool_fee_payer_balance_timestamp_seconds{,pod="a",payer="p"} -9+60x430
relaypool_fee_payer_balance_timestamp_seconds{,pod="b",payer="p"} -9+60x430
relaypool_spent_lamports_total{,pod="a",kind="transfer",cost="rent"} 0+1000000x430
relaypool_spent_lamports_total{,pod="b",kind="transfer",cost="rent"} 0+1000000x430
relaypool_returned_lamports_total{,pod="a"} 0+100000x430
relaypool_returned_lamports_total{,pod="b"} 0+100000x430
relaypool_ledger_unknown_signatures{,pod="a"} 1x430
relaypool_ledger_difference_lamports{,pod="a",payer="p"} 0x430
relaypool_ledger_gaps{,pod="a",payer="p"} 0x430
relaypool_ledger_reconciled_timestamp_seconds{,pod="a",payer="p"} -300+60x430
relaypool_spend_cap_lamports{,pod="a",cap="day"} 2000000000x430
relaypool_spend_cap_left_lamports{,pod="a",cap="day"} 1200000000x430
relaypool_rpc_endpoint_up{,pod="a",endpoint="x"} 1x430
relaypool_rpc_endpoint_up{,pod="b",endpoint="x"} 1x430
relaypool_rpc_endpoint_up{,pod="a",endpoint="y"} 1x430
relaypool_rpc_endpoint_lag_slots{,pod="a",endpoint="x"} 1x430
relaypool_rpc_endpoint_lag_slots{,pod="b",endpoint="x"} 1x430
relaypool_tree_self_check{,pod="a"} 1x430
relaypool_tree_self_check{,pod="b"} 1x430
relaypool_tree_leaves{,pod="a"} 1000+8x430
relaypool_index_published_leaves{,pod="a"} 990+8x430
relaypool_index_unknown_version_transactions{,pod="a"} 0x430
relaypool_router_breaker_open{,pod="a",router="preferred"} 0x430
relaypool_router_breaker_open{,pod="b",router="preferred"} 0x430
relaypool_router_requests_total{,pod="a",router="preferred",call="quote",outcome="ok"} 0+60x430
relaypool_router_requests_total{,pod="a",router="preferred",call="quote",outcome="no_route"} 0+30x430
relaypool_router_requests_total{,pod="a",router="preferred",call="quote",outcome="timeout"} 0+1x430
relaypool_router_rejected_routes_total{,pod="a",what="program"} 1x430
relaypool_swaps_ended_total{,pod="a",outcome="executed"} 0+30x430
relaypool_swaps_ended_total{,pod="a",outcome="refunded"} 0+1x430
`

// trials has a trial for each alert of a fleet, without the prefix of their names.
func trials() map[string]trial {
	return map[string]trial{
		"BacklogTooOld": {
			faulty: `relaypool_backlog_oldest_age_seconds{,pod="a"} 61x430`, fires: only("BacklogTooOld"),
			justBelow: `relaypool_backlog_oldest_age_seconds{,pod="a"} 60x430`,
		},
		"SubmissionsHeld": {
			faulty: `relaypool_held_submissions{,pod="a",reason="fee_payer_empty"} 1x430`, fires: only("SubmissionsHeld{reason=fee_payer_empty}"),
			justBelow: `relaypool_held_submissions{,pod="a",reason="swap_price"} 400x430`,
		},
		"SwapOverdue": {
			faulty: `relaypool_swaps_overdue{,pod="a"} 1x430`, fires: only("SwapOverdue"),
			justBelow: `relaypool_swaps_overdue{,pod="a"} 0x37 1x390`,
		},
		"InternalErrors": {
			faulty: `relaypool_submissions_total{,pod="a",kind="transfer",outcome="internal"} _x60 1x300`, fires: only("InternalErrors"),
			justBelow: `relaypool_submissions_total{,pod="a",kind="transfer",outcome="internal"} 3x430`, at: "70m",
		},
		"RequestsRefused": {
			faulty: `relaypool_http_requests_total{,pod="a",route="/transact",method="POST",status="503"} 0+31x430`, fires: only("RequestsRefused"),
			justBelow: `relaypool_http_requests_total{,pod="a",route="/transact",method="POST",status="503"} 0+29x430`,
		},
		"ProcessDied": {
			faulty: `relaypool_lease_events_total{,pod="a",event="reaped"} 2x34 3x390`, fires: only("ProcessDied"),
			justBelow: `relaypool_lease_events_total{,pod="a",event="reaped"} 2x10 3x420`,
		},
		"RetentionBehind": {
			faulty: `relaypool_maintenance_runs_total{,pod="b",job="retention",outcome="done"} 5x430`, fires: only("RetentionBehind"),
			justBelow: `relaypool_maintenance_runs_total{,pod="b",job="retention",outcome="done"} 5x45 6x400`, at: "160m",
		},
		"AllFeePayersUnusable": {
			faulty: `relaypool_fee_payer_usable{,pod="a",payer="p"} 0x430
relaypool_fee_payer_usable{,pod="b",payer="p"} 0x430
relaypool_fee_payer_usable{,pod="a",payer="q"} 0x430`,
			fires: map[string]string{"AllFeePayersUnusable": "", "FeePayerUnusable{payer=p}": "", "FeePayerUnusable{payer=q}": ""},
			justBelow: `relaypool_fee_payer_usable{,pod="a",payer="p"} 0x430
relaypool_fee_payer_usable{,pod="a",payer="q"} 0x430`, belowFires: only("FeePayerUnusable{payer=q}"),
		},
		"FeePayerUnusable": {
			faulty: `relaypool_fee_payer_usable{,pod="a",payer="q"} 0x430`, fires: only("FeePayerUnusable{payer=q}"),
			justBelow: `relaypool_fee_payer_usable{,pod="b",payer="p"} 0x430`,
		},
		"FeePayerBalanceUnread": {
			faulty: `relaypool_fee_payer_balance_timestamp_seconds{,pod="a",payer="p"} -121+60x430
relaypool_fee_payer_balance_timestamp_seconds{,pod="b",payer="p"} -121+60x430`, fires: only("FeePayerBalanceUnread{payer=p}"),
			justBelow: `relaypool_fee_payer_balance_timestamp_seconds{,pod="a",payer="p"} -900+60x430
relaypool_fee_payer_balance_timestamp_seconds{,pod="b",payer="p"} -120+60x430`,
		},
		"SignerUnavailable": {
			faulty: `relaypool_signer_available{,pod="b",signer="s"} 0x430`, fires: only("SignerUnavailable{signer=s}"),
			justBelow: `relaypool_signer_available{,pod="a",signer="s"} 1x38 0x390`,
		},
		"UnknownFeePayerSignature": {
			faulty: `relaypool_ledger_unknown_signatures{,pod="a"} 1x30 2x400`, fires: only("UnknownFeePayerSignature"),
			justBelow: `relaypool_ledger_unknown_signatures{,pod="a"} 2x430`,
		},
		"RunwayBelowOneDay": { // 7.8 SOL are above the minima, and 90 333 lamports are spent a second
			faulty: `relaypool_spent_lamports_total{,pod="a",kind="transfer",cost="rent"} 0+5520000x430
relaypool_spent_lamports_total{,pod="b",kind="transfer",cost="rent"} 0+5520000x430`, fires: map[string]string{"RunwayBelowOneDay": "23h 59m 6s"},
			justBelow: `relaypool_spent_lamports_total{,pod="a",kind="transfer",cost="rent"} 0+5500000x430
relaypool_spent_lamports_total{,pod="b",kind="transfer",cost="rent"} 0+5500000x430`, at: "7h",
		},
		"RunwayBelowTwoHours": {
			faulty: `relaypool_spent_lamports_total{,pod="a",kind="transfer",cost="rent"} 0+65200000x430
relaypool_spent_lamports_total{,pod="b",kind="transfer",cost="rent"} 0+65200000x430`, fires: map[string]string{"RunwayBelowTwoHours": "1h 59m 48s", "RunwayBelowOneDay": "1h 59m 48s"},
			justBelow: `relaypool_spent_lamports_total{,pod="a",kind="transfer",cost="rent"} 0+65000000x430
relaypool_spent_lamports_total{,pod="b",kind="transfer",cost="rent"} 0+65000000x430`, belowFires: map[string]string{"RunwayBelowOneDay": "2h 0m 11s"}, at: "7h",
		},
		"LedgerDifference": {
			faulty: `relaypool_ledger_difference_lamports{,pod="a",payer="p"} -1x430`, fires: only("LedgerDifference{payer=p}"),
			justBelow: `relaypool_ledger_difference_lamports{,pod="a",payer="p"} 0x34 -1x390`,
		},
		"LedgerGap": {
			faulty: `relaypool_ledger_gaps{,pod="a",payer="p"} 1x430`, fires: only("LedgerGap{payer=p}"),
			justBelow: `relaypool_ledger_gaps{,pod="a",payer="p"} 1x35 0x390`,
		},
		"LedgerBehind": {
			faulty: `relaypool_ledger_reconciled_timestamp_seconds{,pod="a",payer="p"} -1201+60x430`, fires: only("LedgerBehind{payer=p}"),
			justBelow: `relaypool_ledger_reconciled_timestamp_seconds{,pod="a",payer="p"} -1200+60x430`,
		},
		"FeePayerBalanceLow": {
			faulty: `relaypool_fee_payer_balance_lamports{,pod="a",payer="q"} 1079999999x430`, fires: only("FeePayerBalanceLow{payer=q}"),
			justBelow: `relaypool_fee_payer_balance_lamports{,pod="a",payer="q"} 1080000000x430`,
		},
		"SpendCapNearlyReached": {
			faulty: `relaypool_spend_cap_left_lamports{,pod="a",cap="day"} 399999999x430`, fires: only("SpendCapNearlyReached{cap=day}"),
			justBelow: `relaypool_spend_cap_left_lamports{,pod="a",cap="day"} 400000000x430`,
		},
		"SpendCapReached": {
			faulty: `relaypool_spend_cap_left_lamports{,pod="a",cap="day"} 1786759x430`, fires: map[string]string{"SpendCapReached{cap=day}": "", "SpendCapNearlyReached{cap=day}": ""},
			justBelow: `relaypool_spend_cap_left_lamports{,pod="a",cap="day"} 1786760x430`, belowFires: only("SpendCapNearlyReached{cap=day}"),
		},
		"AllEndpointsDown": {
			faulty: `relaypool_rpc_endpoint_up{,pod="a",endpoint="x"} 0x430
relaypool_rpc_endpoint_up{,pod="b",endpoint="x"} 0x430
relaypool_rpc_endpoint_up{,pod="a",endpoint="y"} 0x430`,
			fires: map[string]string{"AllEndpointsDown": "", "EndpointDown{endpoint=x}": "", "EndpointDown{endpoint=y}": ""},
			justBelow: `relaypool_rpc_endpoint_up{,pod="a",endpoint="x"} 0x430
relaypool_rpc_endpoint_up{,pod="a",endpoint="y"} 0x430`, belowFires: only("EndpointDown{endpoint=y}"),
		},
		"EndpointDown": {
			faulty: `relaypool_rpc_endpoint_up{,pod="a",endpoint="y"} 0x430`, fires: only("EndpointDown{endpoint=y}"),
			justBelow: `relaypool_rpc_endpoint_up{,pod="a",endpoint="x"} 0x430`,
		},
		"EndpointLags": {
			faulty: `relaypool_rpc_endpoint_lag_slots{,pod="a",endpoint="x"} 301x430
relaypool_rpc_endpoint_lag_slots{,pod="b",endpoint="x"} 301x430`, fires: only("EndpointLags{endpoint=x}"),
			justBelow: `relaypool_rpc_endpoint_lag_slots{,pod="a",endpoint="x"} 900x430
relaypool_rpc_endpoint_lag_slots{,pod="b",endpoint="x"} 300x430`,
		},
		"EndpointContradicts": {
			faulty: `relaypool_rpc_contradictions_total{,pod="a",endpoint="x"} 0+1x430`, fires: only("EndpointContradicts{endpoint=x}"),
			justBelow: `relaypool_rpc_contradictions_total{,pod="a",endpoint="x"} 0+0.6x430`,
		},
		"FinalityStalled": {
			faulty: `relaypool_finalized_slot_timestamp_seconds{,pod="a"} -61+60x430
relaypool_rpc_endpoint_up{,pod="a",endpoint="x"} 1x430`, fires: only("FinalityStalled"),
			justBelow: `relaypool_finalized_slot_timestamp_seconds{,pod="a"} -60+60x430
relaypool_rpc_endpoint_up{,pod="a",endpoint="x"} 1x430`,
		},
		"UnknownTransactionVersion": {
			faulty: `relaypool_index_unknown_version_transactions{,pod="b"} 1x430`, fires: only("UnknownTransactionVersion"),
			justBelow: `relaypool_index_unknown_version_transactions{,pod="b"} 0x430`,
		},
		"TreeContradictsProfile": {
			faulty: `relaypool_tree_self_check{,pod="b"} 0x430`, fires: only("TreeContradictsProfile"),
			justBelow: `relaypool_tree_self_check{,pod="b"} _x430`,
		},
		"PoolNotInitialised": {
			faulty: `relaypool_tree_leaves{,pod="a"} _x430`, fires: only("PoolNotInitialised"),
			justBelow: `relaypool_tree_leaves{,pod="a"} _x430
relaypool_tree_leaves{,pod="b"} 1000+8x430`,
		},
		"TreeNearlyFull": {
			faulty: `relaypool_tree_leaves{,pod="a"} 3865470562x430
relaypool_index_published_leaves{,pod="a"} 3865470561x430`, fires: only("TreeNearlyFull"),
			justBelow: `relaypool_tree_leaves{,pod="a"} 3865470561x430
relaypool_index_published_leaves{,pod="a"} 3865470561x430`,
		},
		"CommitmentIndexBehind": {
			faulty: `relaypool_index_published_leaves{,pod="a"} 949+8x430`, fires: only("CommitmentIndexBehind"),
			justBelow: `relaypool_index_published_leaves{,pod="a"} 950+8x430`,
		},
		"AttemptsExpire": {
			faulty: `relaypool_attempt_events_total{,pod="a",event="expired"} 0+6.1x430`, fires: only("AttemptsExpire"),
			justBelow: `relaypool_attempt_events_total{,pod="a",event="expired"} 0+5.9x430`,
		},
		"TransactionsRolledBack": {
			faulty: `relaypool_attempt_events_total{,pod="a",event="reopened"} 0x30 1x400`, fires: only("TransactionsRolledBack"),
			justBelow: `relaypool_attempt_events_total{,pod="a",event="reopened"} 1x430`,
		},
		"StaleRoots": { // 30 submissions complete a minute
			faulty: `relaypool_submissions_total{,pod="a",kind="transfer",outcome="root_not_found"} 0+3.4x430`, fires: only("StaleRoots"),
			justBelow: `relaypool_submissions_total{,pod="a",kind="transfer",outcome="root_not_found"} 0+3.3x430`,
		},
		"ProgramRefusesSubmissions": {
			faulty: `relaypool_submissions_total{,pod="a",kind="withdrawal",outcome="program_error"} 0+1.6x430`, fires: only("ProgramRefusesSubmissions"),
			justBelow: `relaypool_submissions_total{,pod="a",kind="withdrawal",outcome="program_error"} 0+1.5x430`,
		},
		"NotesSpentElsewhere": {
			faulty: `relaypool_submissions_total{,pod="b",kind="swap",outcome="nullifier_spent"} 0+3.4x430`, fires: only("NotesSpentElsewhere"),
			justBelow: `relaypool_submissions_total{,pod="b",kind="swap",outcome="nullifier_spent"} 0+3.3x430`,
		},
		"SubmissionsFail": {
			faulty: `relaypool_submissions_total{,pod="b",kind="withdrawal",outcome="recipient_below_rent"} 0+1.6x430`, fires: only("SubmissionsFail{outcome=recipient_below_rent}"),
			justBelow: `relaypool_submissions_total{,pod="b",kind="withdrawal",outcome="recipient_below_rent"} 0+1.5x430`,
		},
		"NoRelayReports": {
			faulty: "*", fires: only("NoRelayReports"),
			// The last samples count for five minutes more.
			justBelow: `relaypool_backlog_submissions{,pod="a"} 3x31 _x398
relaypool_backlog_submissions{,pod="b"} 3x31 _x398`,
		},
		"RouterDown": {
			faulty: `relaypool_router_breaker_open{,pod="a",router="preferred"} 1x430
relaypool_router_breaker_open{,pod="b",router="preferred"} 1x430`, fires: only("RouterDown"),
			justBelow: `relaypool_router_breaker_open{,pod="a",router="preferred"} 1x430
relaypool_router_breaker_open{,pod="b",router="preferred"} 1x430
relaypool_router_breaker_open{,pod="a",router="second"} 0x430`,
		},
		"RouterRoutesRejected": {
			faulty: `relaypool_router_rejected_routes_total{,pod="a",what="program"} 1x34 2x390`, fires: only("RouterRoutesRejected"),
			justBelow: `relaypool_router_rejected_routes_total{,pod="a",what="program"} 1x10 2x420`,
		},
		"RouterFails": {
			faulty: `relaypool_router_requests_total{,pod="a",router="preferred",call="quote",outcome="timeout"} 0+10.1x430`, fires: only("RouterFails{router=preferred}"),
			justBelow: `relaypool_router_requests_total{,pod="a",router="preferred",call="quote",outcome="timeout"} 0+9.9x430`,
		},
		"SwapsRefunded": {
			faulty: `relaypool_swaps_ended_total{,pod="a",outcome="refunded"} 0+7.6x430`, fires: only("SwapsRefunded"),
			justBelow: `relaypool_swaps_ended_total{,pod="a",outcome="refunded"} 0+7.4x430`,
		},
	}
}

// otherCauses are further fleets in which an alert fires, or could wrongly fire.
func otherCauses() map[string]trial {
	return map[string]trial{
		"a step panicked":            {faulty: `relaypool_attempt_events_total{,pod="a",event="panic"} 0x30 1x400`, fires: only("InternalErrors")},
		"a pod is new":               {faulty: `relaypool_attempt_events_total{,pod="n",event="panic"} _x35 0x400`, at: "45m"},
		"a request was answered 500": {faulty: `relaypool_http_requests_total{,pod="b",route="/transact",method="POST",status="500"} 0x30 1x400`, fires: only("InternalErrors")},
		"no endpoint, and no tree": {faulty: `relaypool_tree_leaves{,pod="a"} _x430
relaypool_rpc_endpoint_up{,pod="a",endpoint="x"} 0x430
relaypool_rpc_endpoint_up{,pod="b",endpoint="x"} 0x430
relaypool_rpc_endpoint_up{,pod="a",endpoint="y"} 0x430`, fires: map[string]string{"AllEndpointsDown": "", "EndpointDown{endpoint=x}": "", "EndpointDown{endpoint=y}": ""}},
		"no lamports are spent": {faulty: `relaypool_spent_lamports_total{,pod="a",kind="transfer",cost="rent"} 5x430
relaypool_spent_lamports_total{,pod="b",kind="transfer",cost="rent"} 5x430`},
		"a roll-out replaces pods": {faulty: `relaypool_spent_lamports_total{,pod="a",kind="transfer",cost="rent"} 0+1000000x200 _x229
relaypool_spent_lamports_total{,pod="b",kind="transfer",cost="rent"} 0+1000000x200 _x229
relaypool_spent_lamports_total{,pod="c",kind="transfer",cost="rent"} _x199 200000000+1000000x230`, at: "7h"},
		"rent that was paid is returned": {faulty: `relaypool_spent_lamports_total{,pod="a",kind="swap",cost="rent"} 0+90000000x430
relaypool_returned_lamports_total{,pod="a"} 0+89900000x430
relaypool_returned_lamports_total{,pod="b"} 0+89900000x430`, at: "7h"},
		"retention has never been done": {faulty: `relaypool_maintenance_runs_total{,pod="a",job="retention",outcome="done"} 0x430
relaypool_maintenance_runs_total{,pod="b",job="retention",outcome="done"} 0x430`, fires: only("RetentionBehind"), at: "160m"},
		"retention has not been done by any pod of the last release": {faulty: `relaypool_maintenance_runs_total{,pod="b",job="retention",outcome="done"} 5x10 6x20 _x400
relaypool_maintenance_runs_total{,pod="c",job="retention",outcome="done"} _x20 0x400`, fires: only("RetentionBehind"), at: "170m"},
		"the first run of retention precedes the first scrape": {faulty: `relaypool_maintenance_runs_total{,pod="a",job="retention",outcome="done"} 0x430
relaypool_maintenance_runs_total{,pod="b",job="retention",outcome="done"} 1x14 2x10 3x400`, at: "13m"},
		"retention begins again after a fleet had no pod": {faulty: `relaypool_maintenance_runs_total{,pod="a",job="retention",outcome="done"} 0x10 _x420
relaypool_maintenance_runs_total{,pod="b",job="retention",outcome="done"} 5x10 _x109 1x24 2x400`, at: "143m"},
		"a ledger was never complete": {faulty: `relaypool_ledger_reconciled_timestamp_seconds{,pod="a",payer="q"} 0x430`, fires: only("LedgerBehind{payer=q}")},
		// In a quiet fleet a few failures are a large share.
		"a request is refused, and no other follows": {faulty: `relaypool_http_requests_total{,pod="a",route="/transact",method="POST",status="200"} 0x430
relaypool_http_requests_total{,pod="a",route="/transact",method="POST",status="503"} 0x20 1x400`, at: "28m"},
		"a request is refused twice, and then accepted": {faulty: `relaypool_http_requests_total{,pod="a",route="/transact",method="POST",status="200"} 0x22 1x400
relaypool_http_requests_total{,pod="a",route="/transact",method="POST",status="503"} 0x20 1 2x400`, at: "28m"},
		"the only client is always refused": {faulty: `relaypool_http_requests_total{,pod="a",route="/transact",method="POST",status="200"} 0x430
relaypool_http_requests_total{,pod="a",route="/transact",method="POST",status="503"} 0x20 0+3x400`, fires: only("RequestsRefused")},
		"many requests are refused within a minute, and none later": {faulty: `relaypool_http_requests_total{,pod="a",route="/transact",method="POST",status="200"} 0x430
relaypool_http_requests_total{,pod="a",route="/transact",method="POST",status="503"} 0x20 500x400`, at: "28m"},
		"the program refuses two of two submissions": {faulty: `relaypool_submissions_total{,pod="a",kind="transfer",outcome="completed"} 0x430
relaypool_submissions_total{,pod="a",kind="transfer",outcome="program_error"} 0x10 1x10 2x400`, at: "30m"},
		"two submissions fail for each cause, and none completes": {faulty: `relaypool_submissions_total{,pod="a",kind="transfer",outcome="completed"} 0x430
relaypool_submissions_total{,pod="a",kind="transfer",outcome="root_not_found"} 0x10 1x10 2x400
relaypool_submissions_total{,pod="a",kind="transfer",outcome="nullifier_spent"} 0x10 1x10 2x400
relaypool_submissions_total{,pod="a",kind="withdrawal",outcome="recipient_below_rent"} 0x10 1x10 2x400`, at: "30m"},
		"the program refuses everything that a few clients send": {faulty: `relaypool_submissions_total{,pod="a",kind="transfer",outcome="completed"} 0x430
relaypool_submissions_total{,pod="a",kind="transfer",outcome="program_error"} 0+0.25x430`, fires: only("ProgramRefusesSubmissions")},
		"two of two transactions expire": {faulty: `relaypool_attempt_events_total{,pod="a",event="signed"} 0x9 1x10 2x400
relaypool_attempt_events_total{,pod="a",event="expired"} 0x10 1x10 2x400`, at: "30m"},
		"two of two calls of the router fail": {faulty: `relaypool_router_requests_total{,pod="a",router="preferred",call="quote",outcome="ok"} 0x430
relaypool_router_requests_total{,pod="a",router="preferred",call="quote",outcome="no_route"} 0x430
relaypool_router_requests_total{,pod="a",router="preferred",call="quote",outcome="timeout"} 0x10 1x10 2x400`, at: "30m"},
		"a fallback router that is rarely asked always fails": {
			faulty: `relaypool_router_requests_total{,pod="a",router="second",call="quote",outcome="rejected"} 0+1x430`, fires: only("RouterFails{router=second}"),
		},
		"two of four swaps are refunded": {faulty: `relaypool_swaps_ended_total{,pod="a",outcome="executed"} 0x10 2x400
relaypool_swaps_ended_total{,pod="a",outcome="refunded"} 0x10 1x10 2x400`},
	}
}

// healthyOperator is an operator without faults.
const healthyOperator = `
relaypool_operator_pools{condition="Ready",status="True"} 1x430
relaypool_operator_pool_condition{namespace="pools",pool="s",condition="Ready",status="True",reason="Ready"} 1x430
relaypool_operator_pool_condition{namespace="pools",pool="s",condition="PoolInitialised",status="True",reason="Initialised"} 1x430
relaypool_operator_pool_condition{namespace="pools",pool="s",condition="FeePayersFunded",status="True",reason="Funded"} 1x430
relaypool_operator_rotation_step_started_timestamp_seconds{namespace="pools",pool="s",step="Drain"} -9000+60x430
relaypool_operator_rotation_step_started_timestamp_seconds{namespace="pools",pool="s",step="Fund"} -60+60x430
relaypool_operator_object_events_total{kind="Deployment",event="applied"} 0+1x430
relaypool_operator_passes_total{outcome="steady"} 0+60x430
relaypool_operator_backlog_reading_timestamp_seconds{namespace="pools",pool="s",pod="a"} -5+60x430
relaypool_operator_serving_certificate_expiry_timestamp_seconds{pod="a"} 7000000+60x430
`

// operatorTrials has a trial for each alert about the operator.
func operatorTrials() map[string]trial {
	const poolLabels = `namespace="pools",pool="s"`
	return map[string]trial{
		"PoolNotReady": {
			faulty: `relaypool_operator_pool_condition{` + poolLabels + `,condition="Ready",status="False",reason="Underfunded"} 1x430`, fires: map[string]string{"PoolNotReady{namespace=pools,pool=s}": "Underfunded"},
			justBelow: `relaypool_operator_pool_condition{` + poolLabels + `,condition="Ready",status="False",reason="Underfunded"} _x26 1x400`,
		},
		"PoolNotInitialised": {
			faulty: `relaypool_operator_pool_condition{` + poolLabels + `,condition="PoolInitialised",status="False",reason="AccountMissing"} 1x430`, fires: map[string]string{"PoolNotInitialised{namespace=pools,pool=s}": "AccountMissing"},
			justBelow: `relaypool_operator_pool_condition{` + poolLabels + `,condition="PoolInitialised",status="Unknown",reason="ChainUnavailable"} 1x430`,
		},
		"PoolStalled": {
			faulty: `relaypool_operator_pool_condition{` + poolLabels + `,condition="Stalled",status="True",reason="Refused"} 1x430`, fires: map[string]string{"PoolStalled{namespace=pools,pool=s}": "Refused"},
			justBelow: `relaypool_operator_pool_condition{` + poolLabels + `,condition="Stalled",status="True",reason="Refused"} _x36 1x390`,
		},
		"RetiredKeyFunded": {
			faulty: `relaypool_operator_pool_condition{` + poolLabels + `,condition="FeePayersFunded",status="True",reason="RetiredKeyFunded"} 1x430`, fires: only("RetiredKeyFunded{namespace=pools,pool=s}"),
			justBelow: `relaypool_operator_pool_condition{` + poolLabels + `,condition="FeePayersFunded",status="False",reason="Underfunded"} 1x430`,
		},
		"ChainUnavailable": {
			faulty: `relaypool_operator_chain_unavailable_since_timestamp_seconds{` + poolLabels + `} -601+60x430`, fires: only("ChainUnavailable{namespace=pools,pool=s}"),
			justBelow: `relaypool_operator_chain_unavailable_since_timestamp_seconds{` + poolLabels + `} -600+60x430`,
		},
		"RotationSlow": {
			faulty: `relaypool_operator_rotation_step_started_timestamp_seconds{` + poolLabels + `,step="Drain"} -21660+60x430
relaypool_operator_rotation_step_started_timestamp_seconds{` + poolLabels + `,step="Fund"} -3660+60x430`,
			fires: map[string]string{"RotationSlow{namespace=pools,pool=s,step=Drain}": "6h 1m 0s", "RotationSlow{namespace=pools,pool=s,step=Fund}": "1h 1m 0s"},
			justBelow: `relaypool_operator_rotation_step_started_timestamp_seconds{` + poolLabels + `,step="Drain"} -21600+60x430
relaypool_operator_rotation_step_started_timestamp_seconds{` + poolLabels + `,step="Fund"} -3600+60x430`,
		},
		"ObjectsContested": {
			faulty: `relaypool_operator_object_events_total{kind="Deployment",event="repaired"} 0+0.61x430`, fires: only("ObjectsContested{kind=Deployment}"),
			justBelow: `relaypool_operator_object_events_total{kind="Deployment",event="repaired"} 0+0.59x430`, at: "60m",
		},
		"PassesFail": {
			faulty: `relaypool_operator_passes_total{outcome="failed"} 0+3.1x430`, fires: only("PassesFail"),
			justBelow: `relaypool_operator_passes_total{outcome="failed"} 0+2.9x430`,
		},
		"BacklogUnread": { // one of two processes does not read it
			faulty: `relaypool_operator_backlog_reading_timestamp_seconds{` + poolLabels + `,pod="b"} -61+60x430`, fires: only("BacklogUnread{namespace=pools,pool=s}"),
			justBelow: `relaypool_operator_backlog_reading_timestamp_seconds{` + poolLabels + `,pod="b"} -60+60x430`,
		},
		"CertificateExpires": {
			faulty: `relaypool_operator_serving_certificate_expiry_timestamp_seconds{pod="b"} 1814340+60x430`, fires: map[string]string{"CertificateExpires": "20d 23h 59m 0s"},
			justBelow: `relaypool_operator_serving_certificate_expiry_timestamp_seconds{pod="b"} 1814400+60x430`, at: "2h",
		},
		"Absent": {
			faulty: "*", fires: only("Absent"),
			justBelow: `relaypool_operator_pools{condition="Ready",status="True"} 1x26 _x400`,
		},
	}
}

// operatorOtherCauses are further operators with which an alert fires, or could wrongly
// fire.
func operatorOtherCauses() map[string]trial {
	const poolLabels = `namespace="pools",pool="s"`
	return map[string]trial{
		"reasons change while the pool is not ready": {faulty: `relaypool_operator_pool_condition{` + poolLabels + `,condition="Ready",status="False",reason="Underfunded"} _x10 1x15 stale _x400
relaypool_operator_pool_condition{` + poolLabels + `,condition="Ready",status="Unknown",reason="ChainUnavailable"} _x26 1x5 stale _x400
relaypool_operator_pool_condition{` + poolLabels + `,condition="Ready",status="False",reason="Unavailable"} _x32 1x400`, fires: map[string]string{"PoolNotReady{namespace=pools,pool=s}": "Unavailable"}},
		"reasons change while the pool is not on the chain": {faulty: `relaypool_operator_pool_condition{` + poolLabels + `,condition="PoolInitialised",status="False",reason="AccountMissing"} _x10 1x20 stale _x400
relaypool_operator_pool_condition{` + poolLabels + `,condition="PoolInitialised",status="False",reason="TreeMismatch"} _x31 1x400`, fires: map[string]string{"PoolNotInitialised{namespace=pools,pool=s}": "TreeMismatch"}},
		"reasons change while the pool is stalled": {faulty: `relaypool_operator_pool_condition{` + poolLabels + `,condition="Stalled",status="True",reason="Refused"} _x10 1x26 stale _x400
relaypool_operator_pool_condition{` + poolLabels + `,condition="Stalled",status="True",reason="ForeignObject"} _x37 1x400`, fires: map[string]string{"PoolStalled{namespace=pools,pool=s}": "ForeignObject"}},
		"one of two processes has never read a backlog": {faulty: `relaypool_operator_backlog_reading_timestamp_seconds{` + poolLabels + `,pod="b"} _x10 600x400`, fires: only("BacklogUnread{namespace=pools,pool=s}")},
		"two operators expose the same condition": {faulty: `relaypool_operator_pool_condition{` + poolLabels + `,pod="a",condition="Ready",status="False",reason="Underfunded"} 1x430
relaypool_operator_pool_condition{` + poolLabels + `,pod="b",condition="Ready",status="False",reason="Underfunded"} 1x430`, fires: map[string]string{"PoolNotReady{namespace=pools,pool=s}": "Underfunded"}},
	}
}
