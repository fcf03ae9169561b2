package admission

import (
	"bytes"
	"testing"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// With API keys the hash does not depend on the content, so that a reused key is found.
// Without API keys it does, so that nobody can use up another client's key.
func TestIdempotencyKeyScope(t *testing.T) {
	t.Parallel()
	one := &shieldpool.Call{Inputs: &shieldpool.PublicInputs{Root: [32]byte{1}}}
	two := &shieldpool.Call{Inputs: &shieldpool.PublicInputs{Root: [32]byte{2}}}
	alice, bob := [32]byte{1}, [32]byte{2}
	key := KeyHash
	for name, tt := range map[string]struct {
		a, b []byte
		same bool
	}{
		"a client's key with the same content":    {key("k", alice, one), key("k", alice, one), true},
		"a client's key with other content":       {key("k", alice, one), key("k", alice, two), true},
		"two keys of one client":                  {key("k", alice, one), key("l", alice, one), false},
		"the same key of two clients":             {key("k", alice, one), key("k", bob, one), false},
		"without API keys, with the same content": {key("k", [32]byte{}, one), key("k", [32]byte{}, one), true},
		"without API keys, with other content":    {key("k", [32]byte{}, one), key("k", [32]byte{}, two), false},
	} {
		if len(tt.a) != 32 || bytes.Equal(tt.a, tt.b) != tt.same {
			t.Errorf("%s: the hashes are equal: %t, want %t; lengths %d and %d, want 32", name, bytes.Equal(tt.a, tt.b), tt.same, len(tt.a), len(tt.b))
		}
	}
	if key("", alice, one) != nil {
		t.Error("an empty key has a hash, want none")
	}
}
