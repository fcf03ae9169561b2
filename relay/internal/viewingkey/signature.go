package viewingkey

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"filippo.io/edwards25519"
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/refusal"
)

// Longest base58 texts of 32 and 64 bytes. Longer text is refused before it is
// decoded, because decoding time grows with the square of the length.
const (
	maxBase58Key       = 44
	maxBase58Signature = 88
)

// parseWallet decodes a wallet's public key. It refuses a non-canonical encoding and
// a key of small order: for such a key anybody can make signatures that verify over
// any message, without a private key.
func parseWallet(text string) (ed25519.PublicKey, error) {
	if len(text) > maxBase58Key {
		return nil, refusal.New(refusal.InvalidRequest, "user_pubkey: want a wallet's public key, 32 bytes in base58, received %d characters", len(text))
	}
	key, err := solana.PublicKeyFromBase58(text)
	if err != nil || key.String() != text {
		return nil, refusal.New(refusal.InvalidRequest, "user_pubkey: want a wallet's public key, 32 bytes in base58, received %d characters of other text", len(text))
	}
	point, err := new(edwards25519.Point).SetBytes(key[:])
	if err != nil || !bytes.Equal(point.Bytes(), key[:]) {
		return nil, refusal.New(refusal.InvalidRequest, "user_pubkey: want a wallet's ed25519 public key, received 32 bytes that are not the encoding of a point of the curve; a program-derived address cannot sign in")
	}
	if new(edwards25519.Point).MultByCofactor(point).Equal(edwards25519.NewIdentityPoint()) == 1 {
		return nil, refusal.New(refusal.InvalidRequest, "user_pubkey: want a wallet's ed25519 public key, received a point of small order, which proves no ownership")
	}
	return ed25519.PublicKey(key[:]), nil
}

// checkSignature accepts a signature by the wallet over any of the messages.
func (s *Service) checkSignature(wallet ed25519.PublicKey, text string) error {
	signature, ok := decodeSignature(text)
	if !ok {
		return refusal.New(refusal.InvalidSignature, "signature: want 64 bytes in standard base64, base58 or hexadecimal, received %d characters in none of these forms", len(text))
	}
	for _, message := range s.messages {
		if ed25519.Verify(wallet, []byte(message), signature) {
			return nil
		}
	}
	return refusal.New(refusal.InvalidSignature, "signature: does not verify for user_pubkey; sign exactly the bytes of this service's sign-in message, with the key of user_pubkey")
}

// decodeSignature distinguishes the three encodings of 64 bytes: hexadecimal has 128 characters,
// more than base58 can have, and base64 ends in "==", which base58 cannot contain.
func decodeSignature(text string) ([]byte, bool) {
	switch {
	case len(text) == hex.EncodedLen(ed25519.SignatureSize):
		b, err := hex.DecodeString(text)
		return b, err == nil
	case strings.HasSuffix(text, "=="):
		if len(text) != base64.StdEncoding.EncodedLen(ed25519.SignatureSize) {
			return nil, false
		}
		b, err := base64.StdEncoding.Strict().DecodeString(text)
		return b, err == nil && len(b) == ed25519.SignatureSize
	case len(text) <= maxBase58Signature:
		b, err := solana.SignatureFromBase58(text)
		return b[:], err == nil
	default:
		return nil, false
	}
}
