package httpapi

import (
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/refusal"
)

// decodeRegistration reads the body of POST /viewing-key/register.
func decodeRegistration(raw []byte) (viewingkey.Registration, error) {
	var reg viewingkey.Registration
	o, err := parseObject(raw)
	if err != nil {
		return reg, err
	}
	if reg.UserPubkey, err = o.text(field{"user_pubkey", "the wallet's address in base58", maxAddressLength, refusal.InvalidRequest}); err != nil {
		return reg, err
	}
	if reg.ViewingKeyHex, err = o.text(field{"viewing_key", "64 hexadecimal digits", maxHex32Length, refusal.InvalidViewingKey}); err != nil {
		return reg, err
	}
	if reg.Signature, err = o.text(field{"signature", "the wallet's signature in base64, base58 or hexadecimal", maxSignatureLength, refusal.InvalidSignature}); err != nil {
		return reg, err
	}
	reg.Identifier, err = o.optionalText(field{"identifier", "64 hexadecimal digits", maxHex32Length, refusal.InvalidIdentifier})
	return reg, err
}
