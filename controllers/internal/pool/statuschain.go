package pool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/refs"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

// isSecretsReason reports whether a reason belongs to the condition SecretsResolved.
// Problems of keys have other reasons too.
func isSecretsReason(reason string) bool {
	switch reason {
	case v1alpha1.ReasonSecretNotFound, v1alpha1.ReasonSecretKeyMissing, v1alpha1.ReasonSecretMalformed,
		v1alpha1.ReasonDuplicateKey, v1alpha1.ReasonConfigMapNotFound, v1alpha1.ReasonConfigMapKeyMissing,
		v1alpha1.ReasonConfigMapMalformed, v1alpha1.ReasonSecretForeign,
		v1alpha1.ReasonSecretNotUsable, v1alpha1.ReasonConfigMapNotUsable, v1alpha1.ReasonGeneratedKey:
		return true
	default:
		return false
	}
}

func secretsResolved(f *Facts, p *Plan) verdict {
	problems := p.Problems[:len(p.Problems):len(p.Problems)]
	for _, problem := range p.Keys.Problems {
		if isSecretsReason(problem.Reason) {
			problems = append(problems, problem)
		}
	}
	if len(problems) > 0 {
		return conditionFalse(problems[0].Reason, firstSentences(messages(problems), 3))
	}
	if f.References.ReadAt.IsZero() && !f.isUnread(PartReferences) {
		return conditionUnknown(v1alpha1.ReasonNotChecked, "the Secrets and ConfigMaps that the spec names are being read")
	}
	if !f.References.Known() {
		var parts []string
		for _, u := range f.References.Unread {
			if u.Since.IsZero() {
				parts = append(parts, fmt.Sprintf("%s %s (%s)", u.Kind, u.Name, u.Cause))
			}
		}
		if len(parts) == 0 {
			return unreadable("the Secrets and ConfigMaps that the spec names")
		}
		return unreadable(firstSentences(parts, 3))
	}
	if !f.KeysKnown {
		return unreadable("the Secrets of generated fee payers")
	}
	return conditionTrue(v1alpha1.ReasonResolved, "every Secret and ConfigMap that the spec names exists and is valid")
}

func messages(problems []refs.Problem) []string {
	out := make([]string, 0, len(problems))
	for _, p := range problems {
		out = append(out, p.Message)
	}
	return out
}

func poolInitialised(f *Facts, p *Plan) verdict {
	if len(p.Faults) > 0 || len(f.Target.Problems) > 0 || f.Target.Query.Target.Profile == nil && f.References.Known() {
		return conditionUnknown(v1alpha1.ReasonConfigurationIncomplete, "the pool is not checked before the spec is accepted and its Secrets and ConfigMaps are resolved: see the conditions Accepted and SecretsResolved")
	}
	if !f.ChainRead {
		return orLastStatus(f, v1alpha1.ConditionPoolInitialised, conditionUnknown(v1alpha1.ReasonNotChecked, "the first check of the pool is under way"))
	}
	state, reason, message := f.Chain.Pool()
	switch state {
	case poolcheck.OK:
		return conditionTrue(string(reason), message)
	case poolcheck.Failed:
		return conditionFalse(string(reason), message)
	default:
		if reason == poolcheck.ReasonConfigurationIncomplete {
			message += ": see the condition SecretsResolved"
		}
		return conditionUnknown(string(reason), message)
	}
}

// orLastStatus returns the condition that the status has for this generation of the spec,
// or fallback if there is none. A new leader uses it until its own first check, seconds
// later, so that the RelayPool does not become unready meanwhile.
func orLastStatus(f *Facts, kind string, fallback verdict) verdict {
	last := meta.FindStatusCondition(f.Pool.Status.Conditions, kind)
	if last == nil || last.ObservedGeneration != f.Pool.Generation {
		return fallback
	}
	return verdict{last.Status, last.Reason, last.Message}
}

// hasAllBalances reports whether, in the status, each address is a payer in use with a known
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
			underfunded = append(underfunded, shortfall(payer.Address, lamports(payer.BalanceLamports, 0), minimum, target))
		}
	}
	switch {
	case active == 0:
		for _, problem := range p.Keys.Problems {
			if problem.Reason == v1alpha1.ReasonNoPayers {
				return conditionFalse(problem.Reason, problem.Message)
			}
		}
		return conditionFalse(v1alpha1.ReasonNoPayers, "there is no usable fee payer: see the condition SecretsResolved")
	case len(underfunded) > 0:
		return conditionFalse(v1alpha1.ReasonUnderfunded, firstSentences(underfunded, 4))
	case len(unknown) > 0:
		v := conditionUnknown(v1alpha1.ReasonBalancesUnknown, "the balance of "+firstSentences(unknown, 4)+" could not be read yet: see the condition PoolInitialised")
		if f.ChainRead || !hasAllBalances(unknown, f.Pool.Status.FeePayers) {
			return v
		}
		return orLastStatus(f, v1alpha1.ConditionFeePayersFunded, v)
	}
	for _, problem := range p.Keys.Problems {
		if problem.Reason == v1alpha1.ReasonRetiredKeyFunded {
			return verdict{metav1.ConditionTrue, problem.Reason, problem.Message}
		}
	}
	return conditionTrue(v1alpha1.ReasonFunded, "every fee payer in use holds its minimum of "+sol(minimum))
}

// roundingUnit is the unit, in lamports, to which amounts in the status and its messages are
// rounded, so that they do not change with every transaction.
const roundingUnit = 10_000_000

// shortfall returns the message that asks a person to fund a payer. It rounds the balance
// down and the missing amount up, so that this amount is enough.
func shortfall(address string, balance, minimum, target uint64) string {
	balance = balance / roundingUnit * roundingUnit
	missing := (max(target, minimum) - balance + roundingUnit - 1) / roundingUnit * roundingUnit
	return fmt.Sprintf("fee payer %s holds less than its minimum of %s: send it %s (%d lamports) to reach its target of %s: solana transfer --allow-unfunded-recipient %s %s",
		address, sol(minimum), sol(missing), missing, sol(max(target, minimum)), address, solNumber(missing))
}

// sol writes lamports as SOL, exactly.
func sol(lamports uint64) string { return solNumber(lamports) + " SOL" }

func solNumber(lamports uint64) string {
	const perSOL = 1_000_000_000
	whole := strconv.FormatUint(lamports/perSOL, 10)
	if lamports%perSOL == 0 {
		return whole
	}
	return whole + "." + strings.TrimRight(fmt.Sprintf("%09d", lamports%perSOL), "0")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// spendingCapped reports the cap that limits what the payers spend on transfers. Transfers
// pay the pool no fee, and any owner of a note can send any number of them.
func spendingCapped(f *Facts) verdict {
	caps := f.Pool.Spec.FeePayers.SpendCaps
	transfers := ptr.Deref(caps.TransfersDayLamports, contract.DefaultSpendCapTransfersDay)
	for _, c := range []struct {
		lamports int64
		format   string
	}{
		{transfers, "transfers spend at most %d lamports in any 24 hours (spec.feePayers.spendCaps.transfersDayLamports)"},
		{caps.DayLamports, "the fleet spends at most %d lamports in any 24 hours (spec.feePayers.spendCaps.dayLamports)"},
		{caps.HourLamports, "the fleet spends at most %d lamports in any 60 minutes (spec.feePayers.spendCaps.hourLamports)"},
	} {
		if c.lamports > 0 {
			return conditionTrue(v1alpha1.ReasonCapped, fmt.Sprintf(c.format, c.lamports))
		}
	}
	return conditionFalse(v1alpha1.ReasonNoSpendCap, "transfers pay the pool no fee, so anybody who sends them can make the payers spend their whole balance: set spec.feePayers.spendCaps.transfersDayLamports, or omit it for its default")
}
