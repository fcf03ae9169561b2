package shieldpool

import (
	"fmt"

	"github.com/gagliardetto/solana-go"
)

// Seed is one part of a program address: a literal, or a value that differs by pool or
// submission.
type Seed struct {
	Literal string
	Value   SeedValue
}

// SeedValue names a seed that is not a literal.
type SeedValue string

// These are the values that a seed may stand for. The public program does not use the mint as a
// seed, and uses the pool only for swap states. A later generation of the program uses the
// mint, and uses the pool for nullifiers too.
const (
	SeedMint      SeedValue = "mint"
	SeedPool      SeedValue = "pool"
	SeedNullifier SeedValue = "nullifier"
)

// Seeds are the seeds of each of the program's addresses.
type Seeds struct {
	Pool, MerkleTree, Treasury, Nullifier, SwapState []Seed
}

func defaultSeeds() Seeds {
	return Seeds{
		Pool:       []Seed{{Literal: "pool"}},
		MerkleTree: []Seed{{Literal: "merkle_tree"}},
		Treasury:   []Seed{{Literal: "treasury"}},
		Nullifier:  []Seed{{Literal: "nullifier"}, {Value: SeedNullifier}},
		SwapState:  []Seed{{Literal: "swap_state"}, {Value: SeedPool}, {Value: SeedNullifier}},
	}
}

// Pool is one pool of the program, with the addresses that all its transactions contain.
type Pool struct {
	Profile                       *Profile
	Mint                          Mint
	Address, MerkleTree, Treasury solana.PublicKey

	nullifiers nullifierCache
}

// Pool derives the addresses of the mint's pool. Profiles whose seeds do not contain the
// mint have one pool for all mints.
func (p *Profile) Pool(m Mint) (*Pool, error) {
	pool := &Pool{Profile: p, Mint: m}
	for _, a := range []struct {
		name  string
		seeds []Seed
		to    *solana.PublicKey
	}{{"pool", p.Seeds.Pool, &pool.Address}, {"merkle_tree", p.Seeds.MerkleTree, &pool.MerkleTree}, {"treasury", p.Seeds.Treasury, &pool.Treasury}} {
		addr, _, err := pool.derive(a.seeds, nil)
		if err != nil {
			return nil, fmt.Errorf("derive %s address: %w", a.name, err)
		}
		*a.to = addr
	}
	return pool, nil
}

// Nullifier derives the address and the bump of the account of nullifier n. If this account
// exists and the program owns it, n is spent.
func (p *Pool) Nullifier(n [32]byte) (solana.PublicKey, uint8, error) {
	return p.nullifiers.get(n, func() (solana.PublicKey, uint8, error) {
		return p.derive(p.Profile.Seeds.Nullifier, n[:])
	})
}

// SwapState derives the address and the bump of the account that holds a swap's lamports between
// the two legs. n is the swap's first nullifier.
func (p *Pool) SwapState(n [32]byte) (solana.PublicKey, uint8, error) {
	return p.derive(p.Profile.Seeds.SwapState, n[:])
}

func (p *Pool) derive(seeds []Seed, nullifier []byte) (solana.PublicKey, uint8, error) {
	parts := make([][]byte, len(seeds))
	for i, s := range seeds {
		switch s.Value {
		case "":
			parts[i] = []byte(s.Literal)
		case SeedMint:
			parts[i] = p.Mint.Address[:]
		case SeedPool:
			parts[i] = p.Address[:]
		case SeedNullifier:
			parts[i] = nullifier
		default:
			return solana.PublicKey{}, 0, fmt.Errorf("seed value %q is not known: expected mint, pool or nullifier", s.Value)
		}
	}
	return solana.FindProgramAddress(parts, p.Profile.ProgramID)
}

// Addresses maps each role to its account.
type Addresses map[Role]solana.PublicKey

// addresses derives the addresses of the roles in Transact and TransactSwap. In a transfer or a
// deposit, the payer also has the role of the recipient.
func (p *Pool) addresses(payer solana.PublicKey, in *PublicInputs, d Destination) (Addresses, error) {
	a := Addresses{
		RolePayer: payer, RolePool: p.Address, RoleTreasury: p.Treasury,
		RoleMerkleTree: p.MerkleTree, RoleSystemProgram: solana.SystemProgramID,
		RoleRecipient: payer,
	}
	if !d.Recipient.IsZero() {
		a[RoleRecipient] = d.Recipient
	}
	var err error
	if a[RoleNullifier0], _, err = p.Nullifier(in.Nullifiers[0]); err != nil {
		return nil, fmt.Errorf("derive nullifier0 address: %w", err)
	}
	if a[RoleNullifier1], _, err = p.Nullifier(in.Nullifiers[1]); err != nil {
		return nil, fmt.Errorf("derive nullifier1 address: %w", err)
	}
	if d.Swap != nil {
		if a[RoleSwapState], _, err = p.SwapState(in.Nullifiers[0]); err != nil {
			return nil, fmt.Errorf("derive swap_state address: %w", err)
		}
	}
	return a, nil
}
