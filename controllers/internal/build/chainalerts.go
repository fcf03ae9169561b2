package build

import (
	"fmt"

	"github.com/relaypool/relaypool/relay/contract"
)

// treeNearlyFull is nine tenths of the leaves of a tree of height 32.
const treeNearlyFull = (1 << 32) / 10 * 9

func chainAlerts() []alert {
	return []alert{
		{
			"AllEndpointsDown", "max(" + contract.MetricRPCUp.Name + "{}) == 0", 2 * minute, severityCritical,
			"no RPC endpoint answers: no new work is accepted",
		},
		{
			"EndpointDown", "max by (endpoint) (" + contract.MetricRPCUp.Name + "{}) == 0", 15 * minute, severityWarning,
			"the RPC endpoint {{ $labels.endpoint }} does not answer",
		},
		{
			"EndpointLags", "min by (endpoint) (" + contract.MetricRPCLag.Name + "{}) > 300", 10 * minute, severityWarning,
			"the RPC endpoint {{ $labels.endpoint }} is behind the others",
		},
		{
			// A fork or a slow endpoint causes a few contradictions. A lying endpoint keeps
			// causing them, and they are counted for it and for the endpoints that it contradicts.
			"EndpointContradicts", "sum by (endpoint) (increase(" + contract.MetricRPCContradictions.Name + "{}[15m])) > 10", 5 * minute, severityWarning,
			"the RPC endpoint {{ $labels.endpoint }} and others contradict each other",
		},
		{
			"FinalityStalled", "time() - max(" + contract.MetricFinalityAdvanced.Name + "{}) > 60 and on () max(" + contract.MetricRPCUp.Name + "{}) == 1", minute, severityCritical,
			"the chain's finalized slot does not advance, so accepted work waits; one possible cause is a migration of Solana's consensus",
		},
		{
			// This alert is only a warning. If such a transaction had appended a leaf, the relay
			// would notice that the leaf is missing, because it compares the root of all leaves
			// with the chain's root.
			"UnknownTransactionVersion", "max(" + contract.MetricIndexUnknown.Name + "{}) > 0", 0, severityWarning,
			"blocks hold transactions of a version that the relay cannot decode",
		},
		{
			"TreeContradictsProfile", "min(" + contract.MetricTreeCheck.Name + "{}) == 0", 0, severityCritical,
			"the pool's tree account, decoded as the profile says, is inconsistent: the profile does not fit the program",
		},
		{
			// Once a relay has read the tree, it keeps reporting the leaf count, even if later
			// reads fail. So this alert fires only if the tree has never been read.
			"PoolNotInitialised", "max(" + contract.MetricRPCUp.Name + "{}) == 1 unless on () max(" + contract.MetricTreeLeaves.Name + "{})", 10 * minute, severityCritical,
			"endpoints answer, but the pool's tree does not exist: the pool is not initialised, or is on another cluster",
		},
		{
			"TreeNearlyFull", fmt.Sprintf("max(%s{}) > %d", contract.MetricTreeLeaves.Name, treeNearlyFull), 10 * minute, severityWarning,
			"the pool's tree is nine tenths full: a full one accepts no more leaves",
		},
		{
			"CommitmentIndexBehind", "max(" + contract.MetricTreeLeaves.Name + "{}) - max(" + contract.MetricIndexServed.Name + "{}) > 50", 5 * minute, severityWarning,
			"the commitment list is behind the chain, and clients stop using it",
		},
		{
			"AttemptsExpire", shareAbove(contract.MetricAttempts.Name+`{,event="expired"}`, "0.1", contract.MetricAttempts.Name+`{,event="signed"}`, "15m", minFailures), 15 * minute, severityWarning,
			"transactions expire instead of landing",
		},
		{
			"TransactionsRolledBack", "sum(increase(" + contract.MetricAttempts.Name + `{,event="reopened"}[1h])) > 0`, 0, severityWarning,
			"confirmed transactions were rolled back with their fork; the relay sends them again, and nothing is lost",
		},
	}
}
