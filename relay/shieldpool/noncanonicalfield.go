package shieldpool

import (
	"bytes"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/relaypool/relaypool/relay/refusal"
)

// refuseNonCanonical refuses a field element of the public inputs that is not below the field's
// modulus. at is the field's offset in the public inputs.
func refuseNonCanonical(name string, at int, field *[32]byte) error {
	if canonical(field) {
		return nil
	}
	return refusal.New(refusal.NonCanonicalField,
		"public_inputs field %s at byte %d is not below the field's modulus: expected a canonical BN254 scalar, big-endian; reduce it before encoding", name, at)
}

// modulus is r, big-endian.
var modulus = func() [32]byte {
	var m [32]byte
	fr.Modulus().FillBytes(m[:])
	return m
}()

// canonical reports whether b is below the field's modulus.
func canonical(b *[32]byte) bool { return bytes.Compare(b[:], modulus[:]) < 0 }

// FieldModulus is r, the order of BN254's scalar field.
func FieldModulus() *big.Int { return fr.Modulus() }
