package poolprogram

import (
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// programAddress is a program address with the seeds by which the program signs for it.
type programAddress struct {
	key solana.PublicKey
	// seeds include the bump, as the last seed.
	seeds [][]byte
}

// searchUnits is the cost of finding the address on the chain, in compute units: one
// attempt for each bump from 255 down.
func (d *programAddress) searchUnits() uint64 {
	bump := d.seeds[len(d.seeds)-1][0]
	return addressUnits * (256 - uint64(bump))
}

func (p *program) newPool(mint shieldpool.Mint) (pool, error) {
	out := pool{mint: mint}
	for _, a := range []struct {
		name  string
		seeds []shieldpool.Seed
		to    *programAddress
	}{
		{"pool", p.profile.Seeds.Pool, &out.address},
		{"merkle_tree", p.profile.Seeds.MerkleTree, &out.tree},
		{"treasury", p.profile.Seeds.Treasury, &out.treasury},
	} {
		d, err := p.derive(&out, a.seeds, nil)
		if err != nil {
			return pool{}, fmt.Errorf("pool program: derive %s address: %w", a.name, err)
		}
		*a.to = d
	}
	return out, nil
}

func (p *program) derive(pool *pool, seeds []shieldpool.Seed, nullifier []byte) (programAddress, error) {
	parts := make([][]byte, 0, len(seeds)+1)
	for _, seed := range seeds {
		switch seed.Value {
		case "":
			parts = append(parts, []byte(seed.Literal))
		case shieldpool.SeedMint:
			parts = append(parts, pool.mint.Address[:])
		case shieldpool.SeedPool:
			parts = append(parts, pool.address.key[:])
		case shieldpool.SeedNullifier:
			parts = append(parts, nullifier)
		default:
			return programAddress{}, fmt.Errorf("seed value %q is not known: want mint, pool or nullifier", seed.Value)
		}
	}
	key, bump, err := solana.FindProgramAddress(parts, p.profile.ProgramID)
	if err != nil {
		return programAddress{}, err
	}
	return programAddress{key: key, seeds: append(parts, []byte{bump})}, nil
}

// byAddress returns the pool at an address. It consumes the compute units for finding
// the addresses of the pool, its tree and its treasury.
func (p *program) byAddress(v *bank.Invocation, key solana.PublicKey) (*pool, error) {
	for i := range p.pools {
		pool := &p.pools[i]
		if pool.address.key == key {
			return pool, v.Consume(pool.address.searchUnits() + pool.tree.searchUnits() + pool.treasury.searchUnits())
		}
	}
	return nil, bank.ErrInvalidSeeds
}
