package keys

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/onchain"
)

// FundedKeyEvents returns the events of a RelayPool that is deleted: one for each Secret, and one
// for all signers, whose payers may still have funds. The payers and the rotation are from status. A payer
// without an event has a last known balance of zero (less than balanceUnit, if only the status
// has it), and no Job may have funded it since.
func FundedKeyEvents(status *v1alpha1.RelayPoolStatus, balances map[string]Balance) []Event {
	var events []Event
	for _, p := range status.FeePayers {
		holding := ""
		b, known := balances[p.Address]
		switch {
		case known && b.Lamports > 0:
			holding = fmt.Sprintf("%s holds %s SOL", p.Address, onchain.SOL(b.Lamports))
		case mayHaveReceived(status.Rotation, p):
			holding = p.Address + " may have been funded by a rotation"
		case known:
		case p.BalanceLamports == nil:
			holding = p.Address + " has an unknown balance"
		case *p.BalanceLamports > 0:
			holding = fmt.Sprintf("%s held %s SOL", p.Address, onchain.SOL(uint64(*p.BalanceLamports)))
		}
		if holding == "" {
			continue
		}
		stays := fmt.Sprintf("Secret %s stays, and a RelayPool of the same name uses it again if its keys were generated", p.SecretName)
		if p.SecretName == "" {
			stays = "Keys in key services stay there"
		}
		i := slices.IndexFunc(events, func(e Event) bool { return e.Secret == p.SecretName })
		if i >= 0 {
			events[i].Note = shorten(events[i].Note+"; "+holding, maxNote)
			continue
		}
		events = append(events, Event{
			Type: corev1.EventTypeWarning, Reason: v1alpha1.EventFundedKeyLeft, Action: "Delete", Secret: p.SecretName,
			Note: stays + ": " + holding,
		})
	}
	return events
}

// mayHaveReceived reports whether a rotation's Job may have moved funds to the payer since
// the payer's balance was read.
func mayHaveReceived(r *v1alpha1.RotationStatus, p v1alpha1.FeePayerStatus) bool {
	underWay := r != nil && r.Step != v1alpha1.RotationGenerate && r.Step != v1alpha1.RotationDone
	return underWay && p.SecretName != "" && (p.State == v1alpha1.PayerIncoming || p.State == v1alpha1.PayerActive)
}
