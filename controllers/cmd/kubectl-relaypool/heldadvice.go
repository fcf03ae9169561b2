package main

// unknownReason is the advice for a reason of a newer relay.
const unknownReason = "This plugin does not know the reason: see the alert RelaypoolSubmissionsHeld in the documentation."

// advice says what to do about submissions that are held, by reason. The runbooks in
// docs/reference/alerts say more.
var advice = map[string]string{
	"fee_payer_empty":      "Fund the fee payers: kubectl relaypool fund NAME.",
	"signer_unavailable":   "The key services do not sign: check their address, tokens and network policy.",
	"spend_cap_reached":    "Wait for the cap's window to pass, or raise spec.feePayers.spendCaps.",
	"chain_unavailable":    "No endpoint answers, or the Submit endpoints are away or out of budget: repair them or add one.",
	"pool_not_initialised": "The pool does not accept transactions: see the condition PoolInitialised.",
	"second_endpoint":      "Only one endpoint answers, or two contradict each other: add one of another provider, or remove the wrong one.",
	"chain_history":        "No endpoint's history says whether a transaction landed: add an endpoint with the role Archive.",
	"chain_expiry":         "Endpoints disagree on block heights: remove the wrong one; relay attempts lists and ends the transactions.",
	"program_error":        "Transactions fail on the chain after they simulated well: wait up to 8 minutes; limit the client if there are many.",
	"transaction_format":   "Notes fit no transaction that is sent now: set spec.solana.transactionFormat back to Auto, or the lookup table.",
	"operator":             "The program refuses the deployment: a full tree needs a new pool; clear an unusable spec.solana.lookupTable.",

	"swap_price":               "Nothing: the market gives less than the user's minimum, and the swap is refunded at its timeout.",
	"no_route":                 "Nothing: the router knows no route between the mints, and the swap is refunded at its timeout.",
	"router_unavailable":       "The swap router does not answer: check its URL, API key and budget.",
	"router_hostile":           "The router's answers must not be signed: see the relay's log, and report it to the router's operator.",
	"swap_route_too_large":     "No route fits a transaction: set spec.solana.lookupTable, or transactionFormat to Auto.",
	"swap_quote_stale":         "Quotes are too old before they are signed: check the endpoints' and the router's time to answer.",
	"swap_recipient_frozen":    "Nothing: the mint's authority froze the recipient's account.",
	"swap_account_unusable":    "Nothing: a token account of the swap cannot be used, and the swap is refunded at its timeout.",
	"swap_wallet_unknown":      "The owner of the recipient's account is not known: check that the Read endpoints answer.",
	"swap_state_missing":       "Wait a minute; after that see the alert RelaypoolSwapOverdue.",
	"swap_state_wrong":         "The chain holds other terms than were proved: see the alert RelaypoolSwapOverdue.",
	"swap_execution_failed":    "Executions would fail: see the relay's log for the program's error.",
	"swap_refund_failed":       "Refunds would fail: see the alert RelaypoolSwapOverdue.",
	"swap_timeout_not_reached": "Nothing: the refund comes as soon as the chain reaches the timeout.",
	"swap_timeout_near":        "Nothing: too few slots are left to execute, and the refund follows.",
}

func adviceFor(reason string) string {
	if text, ok := advice[reason]; ok {
		return text
	}
	return unknownReason
}
