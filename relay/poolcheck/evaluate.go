package poolcheck

import (
	"errors"
	"fmt"

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

func (f *Facts) program() Check {
	program := f.Target.Profile.ProgramID
	c := Check{Name: CheckProgram, State: OK, Subject: program.String(), Expected: "an executable program"}
	a, read := f.Accounts[program]
	switch {
	case !read:
		return f.unreadCheck(c)
	case a == nil:
		c.Found = "no account"
	case !a.Executable:
		c.Found = "an account that is not executable"
	default:
		c.Found = "an executable program"
		return c
	}
	c.State, c.Reason = Failed, ReasonProgramMissing
	c.Remedy = "check the program id, and that the RPC endpoint is of the cluster on which the program is deployed"
	return c
}

// pool checks the accounts of one pool. Its second result is the number of leaves in the pool's
// tree; nil if the number is unknown.
func (f *Facts) pool(p *shieldpool.Pool) (checks []Check, next *uint64) {
	checks = []Check{
		f.ownerCheck(CheckPool, p.Address, p), f.ownerCheck(CheckMerkleTree, p.MerkleTree, p), f.ownerCheck(CheckTreasury, p.Treasury, p),
	}
	self := Check{
		Name: CheckSelfCheck, State: Unknown, Reason: checks[1].Reason, Subject: p.MerkleTree.String(),
		Expected: "a root that equals the newest of its history and the one computed from its frontier", Found: "the tree account does not exist", Remedy: checks[1].Remedy,
	}
	room := Check{
		Name: CheckRoom, State: Unknown, Reason: checks[1].Reason, Subject: p.MerkleTree.String(),
		Expected: fmt.Sprintf("at least %d of %d leaves free", MinFreeLeaves, treeCapacity), Found: self.Found, Remedy: checks[1].Remedy,
	}
	if checks[1].State != OK {
		if checks[1].State == Unknown {
			self.Found, room.Found = checks[1].Found, checks[1].Found
		}
		return append(checks, self, room), nil
	}
	tree, err := Tree(p, f.Accounts[p.MerkleTree])
	if tree == nil || err != nil {
		self.State, self.Reason, self.Found = Failed, ReasonTreeMismatch, err.Error()
		self.Remedy = fmt.Sprintf("correct profile %s, above all its rootHistory, which is %d: the program lays its tree out in another way", p.Profile.Name, p.Profile.RootHistory)
		room.Reason, room.Found, room.Remedy = ReasonTreeMismatch, "the tree account cannot be trusted", self.Remedy
		return append(checks, self, room), nil
	}
	self.State, self.Reason, self.Found, self.Remedy = OK, "", "the root agrees with history and frontier", ""
	next = &tree.NextIndex
	room.State, room.Reason, room.Found, room.Remedy = OK, "", "enough leaves are free", ""
	if treeCapacity-tree.NextIndex < MinFreeLeaves {
		room.State, room.Reason = Failed, ReasonTreeFull
		room.Found = "fewer"
		room.Remedy = "move to a pool with a new tree before this one accepts no more transactions"
	}
	return append(checks, self, room), next
}

// ownerCheck checks that an account of the pool exists and is owned by the program.
func (f *Facts) ownerCheck(name string, address solana.PublicKey, p *shieldpool.Pool) Check {
	c := Check{Name: name, State: OK, Subject: address.String(), Expected: "an account of program " + p.Profile.ProgramID.String()}
	a, read := f.Accounts[address]
	switch {
	case !read:
		return f.unreadCheck(c)
	case a == nil:
		c.State, c.Reason, c.Found, c.Remedy = Failed, ReasonAccountMissing, "no account", HowToInitialise(p)
	case a.Owner.Equals(solana.SystemProgramID) && len(a.Data) == 0:
		// Anybody can transfer lamports to an address before the program creates its
		// account.
		c.State, c.Reason, c.Found, c.Remedy = Failed, ReasonAccountMissing, "no account, only lamports that somebody sent there", HowToInitialise(p)
	case !a.Owner.Equals(p.Profile.ProgramID):
		c.State, c.Reason, c.Found = Failed, ReasonAccountForeign, "an account of program "+a.Owner.String()
		c.Remedy = fmt.Sprintf("correct the program id or the seeds of profile %s: the address is another program's", p.Profile.Name)
	default:
		c.Found = c.Expected
	}
	return c
}
