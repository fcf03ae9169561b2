package store

import (
	"bytes"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// refuseReserved refuses a submission if another one has reserved a nullifier of it.
func refuseReserved(sub *submission.Submission, reserved []reservation) error {
	if len(reserved) == 0 {
		return nil
	}
	index := 0
	if bytes.Equal(reserved[0].Nullifier, sub.Call.Inputs.Nullifiers[1][:]) {
		index = 1
	}
	return refusal.New(refusal.NullifierReserved,
		"nullifier %d belongs to another submission of this relay that is under way or has landed: its note cannot be spent twice; choose other notes, or wait for that submission to fail", index).
		With("nullifier_index", index)
}
