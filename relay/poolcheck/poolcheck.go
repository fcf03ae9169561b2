// Package poolcheck reports whether a shielded pool is on the declared chain, matches the
// profile, and accepts transactions. Observe reads the chain through the small interface
// Reader; Evaluate decides and is pure. The relay, the operator and the command `relay probe`
// use the same checks, each with its own reader.
//
// Nothing here writes to the chain. In particular, nothing initialises a pool, because the
// first caller of Initialize becomes the pool's authority.
package poolcheck

import (
	"context"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// MaxAccounts is the largest number of accounts in one call of Reader.Accounts
// (getMultipleAccounts).
const MaxAccounts = 100

// Reader reads the chain. Its errors name the fault and the endpoint that did not answer.
// They contain no URL, because they are shown to people.
type Reader interface {
	// Accounts reads up to MaxAccounts accounts, all at the slot that it returns. The entry
	// of an account that does not exist is nil.
	Accounts(ctx context.Context, keys []solana.PublicKey) (slot uint64, accounts []*onchain.Account, err error)
	// GenesisHash identifies the chain.
	GenesisHash(ctx context.Context) (solana.Hash, error)
}

// Key is the part of a verifying key that the checks need.
type Key struct {
	// Publics is the number of public signals of the key's circuit.
	Publics int
	// Hash is the hash of the groth16.Key.
	Hash [32]byte
}

// ParseKey reads snarkjs' verification_key.json. Its errors name the JSON member at fault. A
// call takes about 20 ms, so callers keep the result.
func ParseKey(snarkjsJSON []byte) (*Key, error) {
	k, err := groth16.ParseKey(snarkjsJSON)
	if err != nil {
		return nil, err
	}
	return KeyOf(k), nil
}

// KeyOf is the part of the key that the checks need.
func KeyOf(k *groth16.Key) *Key { return &Key{Publics: k.NPublic(), Hash: k.Hash()} }

// Target is the pool as it is declared.
type Target struct {
	// Profile contains program id, mints and root history as declared. With nil, only the
	// genesis hash and the verifying key can be checked.
	Profile *shieldpool.Profile
	// Genesis is the hash that the chain must have; zero accepts any.
	Genesis solana.Hash
	// Key is the verifying key; nil leaves its check unknown.
	Key *Key
	// Extra are the accounts of the fee payers. They are read for their balances, in addition to
	// the pool's accounts.
	Extra []solana.PublicKey
}

// Pools returns the pools of the profile's mints, each once. All mints have the same pool
// unless the profile's seeds contain the mint. Pools refuses a profile without mints.
func Pools(p *shieldpool.Profile) ([]*shieldpool.Pool, error) {
	if len(p.Mints) == 0 {
		return nil, errors.New("the profile names no mint: expected at least one")
	}
	var pools []*shieldpool.Pool
	seen := map[solana.PublicKey]bool{}
	for _, m := range p.Mints {
		pool, err := p.Pool(m)
		if err != nil {
			return nil, err
		}
		if !seen[pool.MerkleTree] {
			seen[pool.MerkleTree] = true
			pools = append(pools, pool)
		}
	}
	return pools, nil
}

// Facts are the results of reading a target. A result that could not be read is unknown, which
// is neither failure nor zero.
type Facts struct {
	Target Target
	// Genesis is zero if it could not be read. GenesisErr then says why.
	Genesis    solana.Hash
	GenesisErr error
	// Slot is the slot at which the pool's accounts were read.
	Slot uint64
	// Accounts are the accounts that were read; nil for one that does not exist.
	Accounts map[solana.PublicKey]*onchain.Account
	// AccountsErr says why Accounts lacks accounts that were to be read; nil if it lacks none.
	AccountsErr error
}

// errForeign is the AccountsErr when the endpoint serves another chain.
var errForeign = errors.New("the accounts of another chain are not read")

// ErrIncomplete means that the endpoint lacks an account that every chain has. So the other
// accounts that the endpoint lacks may exist on the chain.
var ErrIncomplete = errors.New("the endpoint's state is incomplete: it does not have the system program's account, which every chain has")

// Observe reads what the checks need: the genesis hash, and the accounts. The pool's
// accounts are always read in one call, and so are all others if there are at most MaxAccounts
// in total.
func Observe(ctx context.Context, r Reader, t Target) Facts {
	f := Facts{Target: t}
	f.Genesis, f.GenesisErr = r.GenesisHash(ctx)
	f.Read(ctx, r)
	return f
}

// Read reads the accounts for a caller that has already set the genesis hash.
func (f *Facts) Read(ctx context.Context, r Reader) {
	f.Accounts = map[solana.PublicKey]*onchain.Account{}
	if f.GenesisErr == nil && !f.Target.Genesis.IsZero() && f.Genesis != f.Target.Genesis {
		f.AccountsErr = errForeign
		return
	}
	keys := f.Target.keys()
	for first := 0; first < len(keys); first += MaxAccounts {
		batch := keys[first:min(first+MaxAccounts, len(keys))]
		slot, accounts, err := r.Accounts(ctx, batch)
		if err == nil && len(accounts) != len(batch) {
			err = fmt.Errorf("received %d accounts, expected %d", len(accounts), len(batch))
		}
		if err == nil && first == 0 && accounts[0] == nil {
			err = ErrIncomplete
		}
		if err != nil {
			f.AccountsErr = err
			return
		}
		if first == 0 {
			f.Slot = slot
		}
		for i, key := range batch {
			f.Accounts[key] = accounts[i]
		}
	}
}

// keys returns the accounts to read, each once: first the system program's, which reveals
// an endpoint without state, then the pool's. It omits the addresses of pools if they cannot be
// derived from the profile; Evaluate reports that.
func (t *Target) keys() []solana.PublicKey {
	keys := []solana.PublicKey{solana.SystemProgramID}
	if t.Profile != nil {
		keys = append(keys, t.Profile.ProgramID)
		pools, _ := Pools(t.Profile)
		for _, p := range pools {
			keys = append(keys, p.Address, p.MerkleTree, p.Treasury)
		}
		for _, m := range t.Profile.Mints {
			keys = append(keys, m.Address)
		}
	}
	keys = append(keys, t.Extra...)
	seen := map[solana.PublicKey]bool{}
	unique := keys[:0]
	for _, key := range keys {
		if !seen[key] {
			seen[key] = true
			unique = append(unique, key)
		}
	}
	return unique
}
