package admission

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// decode makes all checks that need only the request's bytes, and returns the call.
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
	if _, ok := a.Pool.Profile.MintByField(in.MintAddress); !ok {
		return nil, refusal.New(refusal.UnknownMint, "mintAddress is the field value of no mint of this pool: GET / lists the mints that this relay serves")
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
	if !a.Pool.Profile.BindsDestination(in, call.Destination) {
		return nil, extDataMismatch(call.Kind())
	}
	return call, shieldpool.CheckNotes(call.Notes, a.NoteBoundsByFormat().Largest(call.Kind()))
}

func (a *Admission) checkAmount(in *shieldpool.PublicInputs, withdrawalOnly bool) error {
	switch {
	case in.PublicAmount > 0:
		return refusal.New(refusal.DepositNotRelayed,
			"publicAmount is above zero, a deposit: expected zero or less; the depositor's own wallet signs a deposit and sends it to the chain itself")
	case in.PublicAmount == 0 && withdrawalOnly:
		return refusal.New(refusal.WithdrawalRequired, "publicAmount is zero, a transfer: this route accepts only withdrawals, expected below zero; send transfers to POST /transact")
	case in.PublicAmount == 0:
		return nil
	}
	if _, ok := a.Pool.Profile.Fees.Net(in.Gross()); !ok {
		f := a.Pool.Profile.Fees
		return refusal.New(refusal.AmountBelowFee,
			"the withdrawal is not above its fee of %d lamports and %d/%d of the amount: expected a recipient's share above zero; withdraw more", f.Base, f.Numerator, f.Denominator)
	}
	return nil
}

func (a *Admission) parseRecipient(text string, in *shieldpool.PublicInputs) (solana.PublicKey, error) {
	if text == "" {
		return solana.PublicKey{}, refusal.New(refusal.RecipientRequired, "recipient is missing: a withdrawal (publicAmount below zero) needs the base58 address of the wallet to pay")
	}
	key, err := solana.PublicKeyFromBase58(text)
	if err != nil {
		return key, refusal.New(refusal.InvalidRecipient, "recipient is not an address: expected 32 bytes in base58, received %d characters that are not", len(text))
	}
	return key, a.checkRecipient(key, in)
}

func (a *Admission) checkRecipient(key solana.PublicKey, in *shieldpool.PublicInputs) error {
	for _, payer := range a.Payers.Keys() {
		if err := a.Pool.CheckRecipient(payer, key, in); err != nil {
			return err
		}
	}
	return nil
}

func extDataMismatch(k shieldpool.Kind) *refusal.Refusal {
	if k == shieldpool.KindSwap {
		return refusal.New(refusal.ExtDataMismatch,
			"extDataHash does not bind this swap: expected 0x00 and the first 31 bytes of sha256 of output_mint ‖ recipient_ata ‖ min_output_amount, the addresses as 32 bytes each and the amount as u64 little-endian; make the proof for the swap that the request names")
	}
	return refusal.New(refusal.ExtDataMismatch,
		"extDataHash does not bind this recipient: expected 0x00 and the first 31 bytes of sha256 of the recipient's 32 bytes; make the proof for the recipient that the request names")
}
