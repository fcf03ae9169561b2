package pool

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/onchain"
)

// hasAllBalances reports whether the status shows each address as a payer in use with a known
// balance.
func hasAllBalances(addresses []string, shown []v1alpha1.FeePayerStatus) bool {
	for _, address := range addresses {
		if !slices.ContainsFunc(shown, func(p v1alpha1.FeePayerStatus) bool {
			return p.Address == address && p.State == v1alpha1.PayerActive && p.BalanceLamports != nil
		}) {
			return false
		}
	}
	return true
}

// feePayersFunded reports on the payers in use. It reports retired keys with funds only if
// all payers in use are funded.
func feePayersFunded(f *Facts, p *Plan) verdict {
	if !f.KeysKnown || !f.References.Known() {
		return conditionUnknown(v1alpha1.ReasonNotChecked, "the fee payers' keys have not been read yet")
	}
	minimum, target := lamports(f.Pool.Spec.FeePayers.MinimumBalanceLamports, defaultMinimum), lamports(f.Pool.Spec.FeePayers.TargetBalanceLamports, defaultTarget)
	var underfunded, unknown []string
	active := 0
	for i := range p.Keys.Payers {
		payer := &p.Keys.Payers[i]
		if payer.State != v1alpha1.PayerActive {
			continue
		}
		active++
		switch {
		case payer.BalanceLamports == nil:
			unknown = append(unknown, payer.Address)
		case lamports(payer.BalanceLamports, 0) < minimum:
			underfunded = append(underfunded, cmp.Or(copyFirst(f, p, payer.Address),
				shortfall(payer.Address, lamports(payer.BalanceLamports, 0), minimum, target)))
		}
	}
	switch {
	case active == 0 || hasNamedPayers(f) && noPayers(p) != "":
		return conditionFalse(v1alpha1.ReasonNoPayers, cmp.Or(noPayers(p), "there is no usable fee payer: see the condition SecretsResolved"))
	case len(underfunded) > 0:
		return conditionFalse(v1alpha1.ReasonUnderfunded, joinFirst(underfunded, 4))
	case len(unknown) > 0:
		v := conditionUnknown(v1alpha1.ReasonBalancesUnknown, "the balance of "+joinFirst(unknown, 4)+" could not be read yet: see the condition PoolInitialised")
		if f.ChainRead || !hasAllBalances(unknown, f.Pool.Status.FeePayers) {
			return v
		}
		return lastVerdictOr(f, v1alpha1.ConditionFeePayersFunded, v)
	}
	for _, problem := range p.Keys.Problems {
		if problem.Reason == v1alpha1.ReasonRetiredKeyFunded {
			return verdict{metav1.ConditionTrue, problem.Reason, problem.Message}
		}
	}
	return conditionTrue(v1alpha1.ReasonFunded, "every fee payer in use holds its minimum of "+onchain.SOL(minimum)+" SOL")
}

// hasNamedPayers reports whether the spec has payers beside those that it generates. They may be in
// use although no generated key is.
func hasNamedPayers(f *Facts) bool {
	payers := &f.Pool.Spec.FeePayers
	return len(payers.SecretRefs)+len(payers.Signers) > 0
}

// noPayers returns why there is no usable generated key, or "".
func noPayers(p *Plan) string {
	for _, problem := range p.Keys.Problems {
		if problem.Reason == v1alpha1.ReasonNoPayers {
			return problem.Message
		}
	}
	return ""
}

// shortfall returns the message that asks a person to fund a payer. It rounds the balance
// down and the missing amount up, so that this amount is enough.
func shortfall(address string, balance, minimum, target uint64) string {
	balance = balance / roundingUnit * roundingUnit
	missing := (max(target, minimum) - balance + roundingUnit - 1) / roundingUnit * roundingUnit
	return fmt.Sprintf("fee payer %s holds less than its minimum of %s SOL: send it %s SOL (%d lamports) to reach its target of %s SOL: solana transfer --allow-unfunded-recipient %s %s",
		address, onchain.SOL(minimum), onchain.SOL(missing), missing, onchain.SOL(max(target, minimum)), address, onchain.SOL(missing))
}
