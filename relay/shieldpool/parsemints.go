package shieldpool

import (
	"fmt"
	"strings"

	"github.com/gagliardetto/solana-go"
)

// ParseMints reads the mints of a flag, each as address=field: an address in base58 and 64
// hexadecimal digits. Its errors do not repeat values.
func ParseMints(texts []string) ([]Mint, error) {
	var mints []Mint
	for i, t := range texts {
		address, digits, found := strings.Cut(t, "=")
		key, err := solana.PublicKeyFromBase58(address)
		value, ok := parseField(digits)
		if !found || err != nil || !ok {
			return nil, fmt.Errorf("mint %d of %d: expected address=field, an address in base58 and 64 hexadecimal digits, received %d characters that are not", i+1, len(texts), len(t))
		}
		mints = append(mints, Mint{Address: key, Field: value})
	}
	r := &profileChecker{}
	r.validateMints(mints)
	if len(r.faults) > 0 {
		return nil, ProfileProblems(r.faults)
	}
	return mints, nil
}
