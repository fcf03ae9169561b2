package admission

import (
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// decode makes all checks that need only the request's bytes, and returns the call. It accepts
// notes that fit the largest format, even if this relay does not send that format. Another relay
// may have accepted the same request, and the repeated request must be recognised. For a new
// request, checkNewNotes makes the stricter check.
func (a *Admission) decode(r submission.Request) (*shieldpool.Call, error) {
	if err := shieldpool.CheckProofLength(r.Proof); err != nil {
		return nil, err
	}
	in, err := shieldpool.ParsePublicInputs(r.PublicInputs)
	if err != nil {
		return nil, err
	}
	if err := in.CheckNullifiers(); err != nil {
		return nil, err
	}
	if err := a.checkAmount(in, r.WithdrawalOnly || r.Swap != nil); err != nil {
		return nil, err
	}
	if err := a.refuseUnknownMint(in); err != nil {
		return nil, err
	}
	call := &shieldpool.Call{Proof: r.Proof, Inputs: in, Notes: r.Notes}
	switch {
	case r.Swap != nil:
		call.Destination, err = a.swapDestination(r, in)
	case in.PublicAmount < 0:
		call.Recipient, err = a.parseRecipient(r.Recipient, in)
	}
	if err != nil {
		return nil, err
	}
	if err := a.checkDestination(call); err != nil {
		return nil, err
	}
	return call, shieldpool.CheckNotes(call.Notes, a.bounds.Largest(call.Kind()))
}
