package httpapi

import "github.com/relaypool/relaypool/relay/refusal"

func checkIdempotencyKey(key string) error {
	const longest = 255
	valid := key != "" && len(key) <= longest
	for i := 0; valid && i < len(key); i++ {
		valid = key[i] > ' ' && key[i] <= '~'
	}
	if !valid {
		return refusal.New(refusal.InvalidRequest, "Idempotency-Key has %d bytes: expected 1 to %d printable ASCII characters without spaces, such as a UUID", len(key), longest)
	}
	return nil
}
