package boards

import (
	"fmt"

	"github.com/relaypool/relaypool/hack/monitoring/grafana"
	"github.com/relaypool/relaypool/relay/contract"
)

// Money shows what the fee payers hold and spend, for how long that lasts, and
// whether every lamport is accounted for.
func Money() *grafana.Board {
	return &grafana.Board{
		UID: "relaypool-money", Title: "Relaypool / Money",
		Description: "What the fee payers of a RelayPool hold and spend, for how long it lasts, and whether every lamport is accounted for.",
		Variables:   fleets(),
		Rows:        []grafana.Row{moneyPayers(), moneySpending(), moneyCaps(), moneyLedger(), moneySwaps(), moneyKeys()},
	}
}

// inSOL is an expression of lamports, in SOL.
func inSOL(expr string) string { return "(" + expr + ") / 1e9" }

// spentOver is what the fleet spends a second over a window: one counter over all
// pods, so that a roll-out does not cut it.
func spentOver(m contract.Metric, window string, labels ...string) string {
	if m.Labels == nil {
		return fmt.Sprintf("rate((%s)%s)", once(m), window)
	}
	by := "namespace, pool"
	for _, l := range labels {
		by += ", " + l
	}
	return fmt.Sprintf("sum by (%s) (rate((%s)%s))", by, once(m, m.Labels...), window)
}

// runwayHours is for how many hours what the payers hold above their minimum lasts at
// the rate of a window, as the alerts on it reckon; a year at most, which is what a
// fleet has that spends nothing.
func runwayHours(window string) string {
	above := once(contract.MetricPayerBalance, "payer") + " - on (namespace, pool) group_left () " + once(contract.MetricPayerMinimum)
	return "clamp_max(sum by (namespace, pool) (clamp_min(" + above + ", 0)) / clamp_min(" +
		spentOver(contract.MetricSpent, window) + " - " + spentOver(contract.MetricReturned, window) + ", 1) / 3600, 8760)"
}

const (
	lastHour     = "[1h:1m]"
	lastSixHours = "[6h:5m]"
)

func moneyPayers() grafana.Row {
	return grafana.Row{Title: "Fee payers", Panels: []grafana.Panel{
		{
			Title: "Runway", Kind: grafana.Numbers, Unit: grafana.Hours, Width: 6, Height: 5, Below: true, Warn: 24, Alarm: 2,
			Shows: "For how long what the payers hold above their minimum lasts at the rate of the last hour, a year at most.", Good: "days.", Bad: "below 24 h, and below 2 h at night.", Do: "fund the payers: RelaypoolRunwayShort, RelaypoolRunwayEnding.",
			Queries: []grafana.Query{query("{{pool}}", runwayHours(lastHour))},
		},
		{
			Title: "Funds", Kind: grafana.Numbers, Unit: grafana.SOL, Width: 6, Height: 5,
			Shows: "What all payers hold together.", Good: "a week's spending.", Bad: "near the minima.", Do: "1 SOL pays for about 550 transactions.",
			Queries: []grafana.Query{query("{{pool}}", inSOL("sum by (namespace, pool) ("+once(contract.MetricPayerBalance, "payer")+")"))},
		},
		{
			Title: "Payers in use", Kind: grafana.Numbers, Unit: grafana.Count, Width: 6, Height: 5, Below: true, Warn: 2, Alarm: 1,
			Shows: "Payers that some pod chooses from.", Good: "all of them.", Bad: "0: new work is refused.", Do: "RelaypoolPayersDry.",
			Queries: []grafana.Query{query("{{pool}}", "sum by (namespace, pool) ("+once(contract.MetricPayerUsable, "payer")+")")},
		},
		{
			Title: "Spent today", Kind: grafana.Numbers, Unit: grafana.SOL, Width: 6, Height: 5,
			Shows: "What was spent since midnight UTC, rent that was only lent included.", Good: "like the day before.", Bad: "a rise without more clients.", Do: "see which kind it is, below.",
			Queries: []grafana.Query{query("{{pool}}", inSOL("sum by (namespace, pool) ("+once(contract.MetricSpentToday, "kind", "cost")+")"))},
		},
		{
			Title: "Balances", Kind: grafana.Curves, Unit: grafana.SOL,
			Shows: "What each payer holds, and the minimum that each has to keep.", Good: "between minimum and target, all of them.", Bad: "one at the minimum: it is not used.", Do: "fund it: RelaypoolPayerLow.",
			Queries: []grafana.Query{query("{{pool}} {{payer}}", inSOL(once(contract.MetricPayerBalance, "payer"))), query("{{pool}} minimum", inSOL(once(contract.MetricPayerMinimum)))},
		},
		{
			Title: "Runway over time", Kind: grafana.Curves, Log: true, Unit: grafana.Hours, Below: true, Warn: 24, Alarm: 2,
			Shows: "Hours that the funds above the minima last, at the rate of the last hour and of the last six.", Good: "days, by both.", Bad: "that of the hour far below that of the six: something has just begun to spend.", Do: "look at spending by kind.",
			Queries: []grafana.Query{query("{{pool}} at the last hour's rate", runwayHours(lastHour)), query("{{pool}} at the last six hours' rate", runwayHours(lastSixHours))},
		},
		{
			Title: "Payers that are used", Kind: grafana.Curves, Unit: grafana.YesNo,
			Shows: "1 for each payer that some pod chooses from.", Good: "1 for all.", Bad: "0: dry, refused by the chain, or not known.", Do: "RelaypoolPayerDry.",
			Queries: []grafana.Query{query("{{pool}} {{payer}}", once(contract.MetricPayerUsable, "payer"))},
		},
		{
			Title: "Age of the balances", Kind: grafana.Curves, Unit: grafana.Seconds, Warn: 60, Alarm: 120,
			Shows: "How old the newest reading of each balance is, over all pods.", Good: "seconds.", Bad: "above 120 s: the endpoints do not answer.", Do: "RelaypoolBalancesOld.",
			Queries: []grafana.Query{query("{{pool}} {{payer}}", "min by (namespace, pool, payer) ("+contract.MetricPayerAge.Name+"{})")},
		},
		{
			Title: "Under way", Kind: grafana.Areas, Unit: grafana.Count,
			Shows: "Attempts that each payer signed and that may still land, over all pods.", Good: "spread evenly over the payers.", Bad: "all with one: the others are dry.", Do: "fund the others.",
			Queries: []grafana.Query{query("{{pool}} {{payer}}", "sum by (namespace, pool, payer) ("+contract.MetricPayerInFlight.Name+"{})")},
		},
		{
			Title: "Reserved", Kind: grafana.Areas, Unit: grafana.SOL,
			Shows: "What those attempts would cost, which is not spent twice.", Good: "small against the balance.", Bad: "near the balance: the payer counts as dry soon.", Do: "fund it.",
			Queries: []grafana.Query{query("{{pool}} {{payer}}", inSOL("sum by (namespace, pool, payer) ("+contract.MetricPayerReserved.Name+"{})"))},
		},
	}}
}

func moneySpending() grafana.Row {
	return grafana.Row{Title: "Spending", Panels: []grafana.Panel{
		{
			Title: "Spending by kind", Kind: grafana.Areas, Unit: grafana.SOLPerHour,
			Shows: "What transactions of each kind cost, an hour, by the finalized chain. Rent counts as it is paid.", Good: "follows the clients.", Bad: "transfer grows alone: it pays the pool no fee, so somebody may be spending your lamports. unknown at all.", Do: "a cap on transfers; RelaypoolUnknownSignature for unknown.",
			Queries: []grafana.Query{query("{{pool}} {{kind}}", inSOL("3600 * "+spentOver(contract.MetricSpent, "[15m:1m]", "kind")))},
		},
		{
			Title: "Spending by cost", Kind: grafana.Areas, Unit: grafana.SOLPerHour,
			Shows: "The same by what it went to: fee, priority fee, rent, other.", Good: "rent, nearly alone.", Bad: "priority_fee near rent: the cap is high, or the chain is busy. other at all.", Do: "lower spec.solana.priorityFee.cap; RelaypoolLedgerDifference for other.",
			Queries: []grafana.Query{query("{{pool}} {{cost}}", inSOL("3600 * "+spentOver(contract.MetricSpent, "[15m:1m]", "cost")))},
		},
		{
			Title: "What a transaction costs", Kind: grafana.Curves, Unit: grafana.SOL,
			Shows: "What was spent, less the rent that came back, for each submission that was finalized.", Good: "about 0.0018 SOL.", Bad: "above 0.003: priority fees, or refunded swaps.", Do: "compare the costs beside.",
			Queries: []grafana.Query{query("{{pool}}", inSOL(share("("+spentOver(contract.MetricSpent, "[15m:1m]")+" - "+spentOver(contract.MetricReturned, "[15m:1m]")+")", "sum by (namespace, pool) (rate("+contract.MetricSubmissions.Name+`{,outcome="finalized",kind!="settlement"}[15m]))`)))},
		},
		{
			Title: "Spent today by kind", Kind: grafana.Curves, Unit: grafana.SOL,
			Shows: "What was spent since midnight UTC, by kind.", Good: "like the day before at the same hour.", Bad: "transfer above withdrawal and swap together.", Do: "spec.feePayers.spendCaps.transfersDay.",
			Queries: []grafana.Query{query("{{pool}} {{kind}}", inSOL("sum by (namespace, pool, kind) ("+once(contract.MetricSpentToday, "kind", "cost")+")"))},
		},
		{
			Title: "Received and returned", Kind: grafana.Curves, Unit: grafana.SOL,
			Shows: "What payers received in all, which is funding, and rent that came back with swaps that were executed.", Good: "a step for each funding.", Bad: "a step that nobody of you made.", Do: "nothing: somebody sent you lamports.",
			Queries: []grafana.Query{query("{{pool}} received", inSOL(once(contract.MetricReceived))), query("{{pool}} returned", inSOL(once(contract.MetricReturned)))},
		},
		{
			Title: "Entries of the ledger", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "Transactions that were entered into the ledger, a second, by kind.", Good: "follows what is finalized.", Bad: "failed near the others: fees for nothing. unknown at all.", Do: "RelaypoolProgramRefuses; RelaypoolUnknownSignature.",
			Queries: []grafana.Query{query("{{pool}} {{kind}}", total(contract.MetricLedgerEntries, ``, "kind"))},
		},
	}}
}

func moneyCaps() grafana.Row {
	return grafana.Row{Title: "Spend caps", Panels: []grafana.Panel{
		{
			Title: "Left of each cap", Kind: grafana.Curves, Unit: grafana.SOL, Width: 12,
			Shows: "What each cap leaves to be spent in its window now, and the cap itself.", Good: "half of it, on a busy day.", Bad: "near 0: what it covers is refused.", Do: "RelaypoolSpendCapNear, RelaypoolSpendCapReached.",
			Queries: []grafana.Query{query("{{pool}} {{cap}} left", inSOL("min by (namespace, pool, cap) ("+contract.MetricCapLeft.Name+"{})")), query("{{pool}} {{cap}}", inSOL(once(contract.MetricCap, "cap")))},
		},
		{
			Title: "Share of each cap that is used", Kind: grafana.Curves, Unit: grafana.Share, Width: 12, Warn: 0.8, Alarm: 0.98,
			Shows: "Of each cap, what is used in its window.", Good: "below a half.", Bad: "above four fifths.", Do: "find out who spends, or raise the cap.",
			Queries: []grafana.Query{query("{{pool}} {{cap}}", "1 - min by (namespace, pool, cap) ("+contract.MetricCapLeft.Name+"{}) / "+once(contract.MetricCap, "cap"))},
		},
	}}
}

func moneyLedger() grafana.Row {
	return grafana.Row{Title: "Is every lamport accounted for?", Panels: []grafana.Panel{
		{
			Title: "Unknown signatures", Kind: grafana.Numbers, Unit: grafana.Count, Width: 6, Height: 6, Warn: 1, Alarm: 1,
			Shows: "Transactions that a payer of ours signed and the database does not know, ever.", Good: "0.", Bad: "it rises: somebody else holds the key, or rows were lost.", Do: "RelaypoolUnknownSignature, at once.",
			Queries: []grafana.Query{query("{{pool}}", once(contract.MetricLedgerUnknown))},
		},
		{
			Title: "Difference", Kind: grafana.Curves, Unit: grafana.Lamports, Width: 6, Height: 6,
			Shows: "Lamports that the ledger does not account for, by payer.", Good: "0.", Bad: "anything else for ten minutes.", Do: "RelaypoolLedgerDifference: run relay ledger.",
			Queries: []grafana.Query{query("{{pool}} {{payer}}", once(contract.MetricLedgerDifference, "payer"))},
		},
		{
			Title: "Gaps", Kind: grafana.Curves, Unit: grafana.Count, Width: 6, Height: 6, Warn: 1, Alarm: 1,
			Shows: "Places where no endpoint had the history that must be there, by payer.", Good: "0.", Bad: "any.", Do: "RelaypoolLedgerGap: an endpoint with the role archive.",
			Queries: []grafana.Query{query("{{pool}} {{payer}}", once(contract.MetricLedgerGaps, "payer"))},
		},
		{
			Title: "Behind the finalized chain", Kind: grafana.Curves, Unit: grafana.Seconds, Width: 6, Height: 6, Warn: 600, Alarm: 1200,
			Shows: "Time since each payer's ledger was last brought up to the finalized chain.", Good: "below five minutes.", Bad: "above twenty.", Do: "RelaypoolLedgerBehind.",
			Queries: []grafana.Query{query("{{pool}} {{payer}}", once(contract.MetricLedgerAge, "payer"))},
		},
	}}
}

func moneySwaps() grafana.Row {
	return grafana.Row{Title: "Swaps: users' money between two legs", Panels: []grafana.Panel{
		{
			Title: "Swaps that ended", Kind: grafana.Areas, Unit: grafana.PerSecond,
			Shows: "Swaps that were executed, and refunded, a second.", Good: "executed, nearly alone.", Bad: "a fifth refunded.", Do: "RelaypoolRefundsNearExecutions.",
			Queries: []grafana.Query{query("{{pool}} {{outcome}}", total(contract.MetricSwapsSettled, ``, "outcome"))},
		},
		{
			Title: "Swaps under way", Kind: grafana.Areas, Unit: grafana.Count,
			Shows: "Swaps whose second leg is not settled, by phase.", Good: "they come and go.", Bad: "funded grows: no price meets the users' minimums, or the router does not answer.", Do: "see what swaps wait for on the dashboard relay.",
			Queries: []grafana.Query{query("{{pool}} {{phase}}", once(contract.MetricSwaps, "phase"))},
		},
		{
			Title: "Overdue", Kind: grafana.Curves, Unit: grafana.Count, Width: 4, Warn: 1, Alarm: 1,
			Shows: "Swaps past their timeout that are neither executed nor refunded: users' lamports that only a refund frees.", Good: "0.", Bad: "any for minutes.", Do: "RelaypoolSwapOverdue: run relay swaps --overdue.",
			Queries: []grafana.Query{query("{{pool}}", once(contract.MetricSwapsOverdue))},
		},
		{
			Title: "Oldest swap", Kind: grafana.Curves, Unit: grafana.Seconds, Width: 4, Warn: 80, Alarm: 120,
			Shows: "Time since the oldest of them was funded.", Good: "below 80 s.", Bad: "above 120 s: its refund does not land.", Do: "RelaypoolSwapOverdue.",
			Queries: []grafana.Query{query("{{pool}}", once(contract.MetricSwapAge))},
		},
	}}
}

func moneyKeys() grafana.Row {
	return grafana.Row{Title: "Keys, as the operator sees them", Panels: []grafana.Panel{
		{
			Title: "Balances by state of the key", Kind: grafana.Curves, Unit: grafana.SOL, Width: 12,
			Shows: "What each key holds, by its state: active, incoming, draining or retired.", Good: "retired at 0; active near its target.", Bad: "retired above 0: somebody still sends to an old address.", Do: "RelayPoolRetiredKeyFunded.",
			Queries: []grafana.Query{query("{{pool}} {{state}} {{payer}}", inSOL(once(contract.MetricOperatorPayerBalance, "payer", "state")))},
		},
		{
			Title: "Age of the operator's balances", Kind: grafana.Curves, Unit: grafana.Seconds, Width: 12, Warn: 300, Alarm: 600,
			Shows: "How old the operator's reading of each balance is.", Good: "below two minutes.", Bad: "above 600 s.", Do: "RelayPoolChainUnavailable.",
			Queries: []grafana.Query{query("{{pool}} {{payer}}", "min by (namespace, pool, payer) ("+contract.MetricOperatorPayerAge.Name+"{})")},
		},
	}}
}
