package chain

import (
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/refusal"
)

// malformedAccount is the error for an account with another layout than the profile's.
func (p *PoolReader) malformedAccount(err error) error {
	return refusal.New(refusal.PoolNotInitialised,
		"the pool's merkle_tree account %s has another layout than profile %s: the relay's operator has to check the profile, above all its rootHistory", p.pool.MerkleTree, p.pool.Profile.Name).
		Retry(retryPool).Because(err)
}

// notInitialised returns the error with the command that initialises the pool.
func (p *PoolReader) notInitialised(a *onchain.Account) error {
	found := "does not exist"
	if a != nil {
		found = "exists but is not owned by the program"
	}
	return refusal.New(refusal.PoolNotInitialised,
		"the pool is not initialised: its merkle_tree account %s %s. The relay's operator has to do this: %s",
		p.pool.MerkleTree, found, poolcheck.HowToInitialise(p.pool)).Retry(retryPool)
}
