package poolcheck

import (
	"fmt"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Tree decodes a pool's tree account and performs its self-check. The tree is nil if the
// account's layout does not match the profile.
func Tree(p *shieldpool.Pool, a *onchain.Account) (*shieldpool.TreeAccount, error) {
	tree, err := p.Profile.ParseTree(a.Data)
	if err != nil {
		return nil, err
	}
	err = tree.SelfCheck()
	return tree, err
}

// treeChecks checks what the account of the pool's tree contains. account is the check of the
// account itself. The second result is the number of leaves in the tree; nil if it is unknown.
func (f *Facts) treeChecks(p *shieldpool.Pool, account Check) (checks []Check, next *uint64) {
	self := Check{
		Name: CheckSelfCheck, State: Unknown, Reason: account.Reason, Subject: p.MerkleTree.String(),
		Expected: "a root that equals the newest of its history and the one computed from its frontier", Found: "the tree account does not exist", Remedy: account.Remedy,
	}
	room := Check{
		Name: CheckRoom, State: Unknown, Reason: account.Reason, Subject: p.MerkleTree.String(),
		Expected: fmt.Sprintf("at least %d of %d leaves free", MinFreeLeaves, treeCapacity), Found: self.Found, Remedy: account.Remedy,
	}
	if account.State != OK {
		if account.State == Unknown {
			self.Found, room.Found = account.Found, account.Found
		}
		return []Check{self, room}, nil
	}
	tree, err := Tree(p, f.Accounts[p.MerkleTree])
	if tree == nil || err != nil {
		self.State, self.Reason, self.Found = Failed, ReasonTreeMismatch, err.Error()
		self.Remedy = fmt.Sprintf("correct profile %s, above all its rootHistory, which is %d: the program lays its tree out in another way", p.Profile.Name, p.Profile.RootHistory)
		room.Reason, room.Found, room.Remedy = ReasonTreeMismatch, "the tree account cannot be trusted", self.Remedy
		return []Check{self, room}, nil
	}
	self.State, self.Reason, self.Found, self.Remedy = OK, "", "the root agrees with history and frontier", ""
	next = &tree.NextIndex
	room.decideRoom(tree.NextIndex)
	return []Check{self, room}, next
}
