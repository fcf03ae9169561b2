package shieldpool

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/refusal"
)

// CheckRecipient refuses, with the code invalid_recipient, a recipient that cannot be paid safely.
// This is an address that is not on the ed25519 curve (unless the profile allows it), the pool
// program, or another account of the transaction.
func (p *Pool) CheckRecipient(payer, recipient solana.PublicKey, in *PublicInputs) error {
	a, err := p.addresses(payer, in, Destination{})
	if err != nil {
		return err
	}
	if err := checkOnCurve(p.Profile, recipient); err != nil {
		return err
	}
	return checkNoOtherAccount(p.Profile, a, recipient)
}

// checkNoOtherAccount refuses a recipient that is the pool program or another account of the
// transaction.
func checkNoOtherAccount(p *Profile, others Addresses, recipient solana.PublicKey) error {
	if recipient.Equals(p.ProgramID) {
		return refusal.New(refusal.InvalidRecipient, "recipient is the pool program itself: expected a wallet address")
	}
	for role, key := range others {
		if role != RoleRecipient && key.Equals(recipient) {
			return refusal.New(refusal.InvalidRecipient,
				"recipient is the transaction's %s account: expected a wallet of the client's own", role)
		}
	}
	return nil
}
