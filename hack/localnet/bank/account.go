package bank

import (
	"slices"

	"github.com/gagliardetto/solana-go"
)

// MaxAccountData is the most data of an account, in bytes.
const MaxAccountData = 10 << 20

// Account is an account of the chain, as the options define it at genesis, as it is
// stored and as a View returns it. It is never changed: a transaction stores a new one.
type Account struct {
	Lamports   uint64
	Data       []byte
	Owner      solana.PublicKey
	Executable bool
}

// version is an account as of one slot. A nil account means that it was closed
// in this slot.
type version struct {
	slot    uint64
	account *Account
}

// accountStore keeps each address's versions in ascending slots, so that a read
// at a commitment level sees the state of its slot and not a newer one, and a
// fork can drop the versions above its slot.
type accountStore map[solana.PublicKey][]version

func (s accountStore) at(key solana.PublicKey, slot uint64) *Account {
	for _, v := range slices.Backward(s[key]) {
		if v.slot <= slot {
			return v.account
		}
	}
	return nil
}

// put stores the account as of slot, which is never below the newest stored.
func (s accountStore) put(key solana.PublicKey, slot uint64, a *Account) {
	versions := s[key]
	if n := len(versions); n > 0 && versions[n-1].slot == slot {
		versions[n-1].account = a
		return
	}
	s[key] = append(versions, version{slot, a})
}

// drop removes the versions above a slot.
func (s accountStore) drop(key solana.PublicKey, slot uint64) {
	versions := s[key]
	n := len(versions)
	for n > 0 && versions[n-1].slot > slot {
		n--
	}
	if n == 0 {
		delete(s, key)
		return
	}
	clear(versions[n:])
	s[key] = versions[:n]
}

// prune removes the versions that no read at slot finalized or above can see.
func (s accountStore) prune(key solana.PublicKey, finalized uint64) {
	versions := s[key]
	first := 0
	for i, v := range versions {
		if v.slot <= finalized {
			first = i
		}
	}
	rest := versions[first:]
	if len(rest) == 1 && rest[0].account == nil && rest[0].slot <= finalized {
		delete(s, key)
		return
	}
	if first > 0 {
		s[key] = slices.Clone(rest)
	}
}
