package poolcheck

import (
	"encoding/hex"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// DevelopmentKeyHash is the hash of the development circuit's verifying key. The circuit's set-up
// comes from a published seed, so anybody can forge proofs that this key accepts.
const DevelopmentKeyHash = "d58edc9120ff01466120c4e6a494420c33009abcf7b5c2f9d1ba38ad41ecae33"

// IsDevelopmentKey reports whether hash is that of the development circuit's verifying key,
// under which anybody can forge proofs.
func IsDevelopmentKey(hash [32]byte) bool { return hex.EncodeToString(hash[:]) == DevelopmentKeyHash }

// KeyAllowed reports whether a verifying key with that hash may be used on the chain with
// that genesis hash: the development key is only for the local chain.
func KeyAllowed(hash [32]byte, genesis solana.Hash) bool {
	return !IsDevelopmentKey(hash) || genesis == shieldpool.DevelopmentGenesisHash
}
