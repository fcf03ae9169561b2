package poolcheck

import (
	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// treeCapacity is the number of leaves that a tree can contain.
	treeCapacity = uint64(1) << merkle.Height
	// MinFreeLeaves is the number of free leaves below which a tree counts as full: a thousandth
	// of all leaves. That number lasts for four hours at the chain's maximum of some 150
	// transactions a second with two leaves each, and for 24 days at one transaction a second.
	MinFreeLeaves = treeCapacity / 1024
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
