package localnet

import (
	"fmt"

	"github.com/gagliardetto/solana-go"
)

// Initialize creates the accounts of each of the profile's pools by the program's
// instruction Initialize. The authority is a well-known key of the local chain.
func (c *Chain) Initialize() error {
	admin := wellKnownKey("relaypool local chain admin")
	if err := c.Fund(admin.PublicKey(), adminLamports); err != nil {
		return err
	}
	made := make(map[solana.PublicKey]bool)
	for _, mint := range c.opts.Profile.Mints {
		pool, err := c.opts.Profile.Pool(mint)
		if err != nil {
			return fmt.Errorf("initialise pool: %w", err)
		}
		// Mints share a pool unless the profile's seeds name the mint. Seeded leaves are in the first one.
		if made[pool.Address] || c.opts.SeedLeaves > 0 && mint == c.opts.Profile.Mints[0] {
			made[pool.Address] = true
			continue
		}
		made[pool.Address] = true
		instruction, err := pool.Initialize(admin.PublicKey())
		if err != nil {
			return fmt.Errorf("initialise pool: %w", err)
		}
		if _, err := c.land([]solana.PrivateKey{admin}, instruction); err != nil {
			return fmt.Errorf("initialise pool: %w", err)
		}
	}
	return nil
}
