package poolcheck

import (
	"errors"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Evaluate decides what the facts mean. It is pure.
func Evaluate(f Facts) Report {
	r := Report{Slot: f.Slot, Balances: map[solana.PublicKey]uint64{}}
	for _, key := range f.Target.Extra {
		if a, read := f.Accounts[key]; read {
			r.Balances[key] = 0
			if a != nil {
				r.Balances[key] = a.Lamports
			}
		}
	}
	r.Checks = append(r.Checks, f.genesis(), f.verifyingKey())
	if f.Target.Profile == nil {
		r.Checks = append(r.Checks, Check{
			Name: CheckProgram, State: Unknown, Reason: ReasonConfigurationIncomplete,
			Expected: "a program profile", Found: "the program profile is not known", Remedy: "correct the profile",
		})
		return r
	}
	pools, err := Pools(f.Target.Profile)
	if err != nil {
		r.Checks = append(r.Checks, Check{
			Name: CheckPool, State: Failed, Reason: ReasonAccountMissing,
			Expected: "a profile from which the pool's addresses follow", Found: err.Error(), Remedy: "correct the profile",
		})
		return r
	}
	r.Checks = append(r.Checks, f.program())
	for _, p := range pools {
		checks, next := f.pool(p)
		r.Checks = append(r.Checks, checks...)
		r.Pools = append(r.Pools, PoolFacts{Mint: p.Mint.Address, Address: p.Address, MerkleTree: p.MerkleTree, Treasury: p.Treasury, NextIndex: next})
	}
	for _, m := range f.Target.Profile.Mints {
		r.Checks = append(r.Checks, f.mint(m.Address))
	}
	return r
}

// unreadCheck completes a check whose account was not read.
func (f *Facts) unreadCheck(c Check) Check {
	c.State, c.Reason = Unknown, ReasonChainUnavailable
	c.Found, c.Remedy = "the account has not been read", "check the RPC endpoint"
	switch {
	case errors.Is(f.AccountsErr, errForeign):
		c.Reason, c.Found, c.Remedy = ReasonWrongCluster, f.AccountsErr.Error(), "correct the RPC endpoint's URL, or the cluster that is declared"
	case f.AccountsErr != nil:
		c.Found = "accounts could not be read: " + f.AccountsErr.Error()
	}
	return c
}

// pool checks the accounts of one pool. Its second result is the number of leaves in the pool's
// tree; nil if the number is unknown.
func (f *Facts) pool(p *shieldpool.Pool) (checks []Check, next *uint64) {
	checks = []Check{
		f.ownerCheck(CheckPool, p.Address, p), f.ownerCheck(CheckMerkleTree, p.MerkleTree, p), f.ownerCheck(CheckTreasury, p.Treasury, p),
	}
	ofTree, next := f.treeChecks(p, checks[1])
	return append(checks, ofTree...), next
}
