package poolprogram

import (
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// derived is a program address with its seeds, by which the program signs for it.
type derived struct {
	key solana.PublicKey
	// seeds include the bump, as the last seed.
	seeds [][]byte
}

// units is the cost of finding the address on the chain, in compute units: one
// attempt for each bump from 255 down.
func (d *derived) units() uint64 {
	bump := d.seeds[len(d.seeds)-1][0]
	return addressUnits * (256 - uint64(bump))
}

func (p *program) newPool(mint shieldpool.Mint) (pool, error) {
	out := pool{mint: mint}
	for _, a := range []struct {
		name  string
		seeds []shieldpool.Seed
		to    *derived
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

func (p *program) derive(of *pool, seeds []shieldpool.Seed, nullifier []byte) (derived, error) {
	parts := make([][]byte, 0, len(seeds)+1)
	for _, seed := range seeds {
		switch seed.Value {
		case "":
			parts = append(parts, []byte(seed.Literal))
		case shieldpool.SeedMint:
			parts = append(parts, of.mint.Address[:])
		case shieldpool.SeedPool:
			parts = append(parts, of.address.key[:])
		case shieldpool.SeedNullifier:
			parts = append(parts, nullifier)
		default:
			return derived{}, fmt.Errorf("seed value %q is not known: want mint, pool or nullifier", seed.Value)
		}
	}
	key, bump, err := solana.FindProgramAddress(parts, p.profile.ProgramID)
	if err != nil {
		return derived{}, err
	}
	return derived{key: key, seeds: append(parts, []byte{bump})}, nil
}

// byAddress returns the pool at an address. It consumes the compute units for finding
// the addresses of the pool, its tree and its treasury.
func (p *program) byAddress(v *bank.Invocation, key solana.PublicKey) (*pool, error) {
	for i := range p.pools {
		of := &p.pools[i]
		if of.address.key == key {
			return of, v.Consume(of.address.units() + of.tree.units() + of.treasury.units())
		}
	}
	return nil, bank.ErrInvalidSeeds
}
