package admission

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

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
