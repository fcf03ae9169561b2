// Package keyfile decodes and encodes fee payers' private keys in the formats of Solana's
// tools. Its errors contain lengths and kinds, never content.
package keyfile

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/mr-tron/base58"
)

// MaxContent is the most bytes that Parse accepts. No key in either format is as long.
const MaxContent = 4096

// Generate makes a private key from 32 bytes of random, which must be cryptographically
// secure, such as crypto/rand.Reader.
func Generate(random io.Reader) (ed25519.PrivateKey, error) {
	seed := make([]byte, ed25519.SeedSize)
	defer clear(seed)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, fmt.Errorf("read %d random bytes for a key: %w", len(seed), err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// Parse decodes a private key: a JSON array of 64 numbers, or base58 of 64 bytes, with or
// without white space around it. The private half comes first, then the public half, which
// must belong to it. The caller may clear the result.
func Parse(content []byte) (ed25519.PrivateKey, error) {
	content = bytes.TrimSpace(content)
	if len(content) > MaxContent {
		return nil, fmt.Errorf("key has %d bytes: expected a JSON array of 64 numbers or base58 of 64 bytes", len(content))
	}
	raw, err := decode(content)
	defer clear(raw)
	if err != nil {
		return nil, err
	}
	if len(raw) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("key decodes to %d bytes: expected %d, the private half and the public one, as solana-keygen and relay keygen write it", len(raw), ed25519.PrivateKeySize)
	}
	private := ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
	if !bytes.Equal(private, raw) {
		clear(private)
		return nil, errors.New("key's public half does not belong to its private half: the content is damaged or put together by hand; use the original file")
	}
	return private, nil
}

// decode drops the decoders' errors, which repeat their input.
func decode(content []byte) ([]byte, error) {
	if len(content) == 0 {
		return nil, errors.New("key is empty: expected a JSON array of 64 numbers or base58 of 64 bytes")
	}
	if content[0] != '[' {
		raw, err := base58.Decode(string(content))
		if err != nil {
			return nil, fmt.Errorf("key of %d characters is neither a JSON array of 64 numbers nor base58 of 64 bytes", len(content))
		}
		return raw, nil
	}
	var numbers []uint8
	if json.Unmarshal(content, &numbers) != nil {
		return nil, fmt.Errorf("key of %d characters starts like a JSON array, but is not one of numbers from 0 to 255: expected 64 numbers", len(content))
	}
	return numbers, nil
}

// Format writes a private key as a JSON array of 64 numbers and a newline, as solana-keygen
// does. The caller may clear the result.
func Format(private ed25519.PrivateKey) []byte {
	content := make([]byte, 0, 4*len(private)+2)
	content = append(content, '[')
	for i, b := range private {
		if i > 0 {
			content = append(content, ',')
		}
		content = strconv.AppendUint(content, uint64(b), 10)
	}
	return append(content, ']', '\n')
}

// Address returns the public half in base58: the address to fund.
func Address(private ed25519.PrivateKey) string {
	return base58.Encode(private[ed25519.SeedSize:])
}
