package poolprogram

import (
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// authoritySize is the data of the pool account: the authority's address.
const authoritySize = 32

// initialize creates pool, tree and treasury. Whoever calls it first becomes
// the authority.
func (p *program) initialize(v *bank.Invocation) error {
	if len(v.Data) != 1 {
		return refuse(v, errInvalidInstructionData, "Initialize takes no data but its tag")
	}
	accounts, err := roles(v, p.profile.Accounts.Initialize)
	if err != nil {
		return err
	}
	payer, tree, treasury := accounts[shieldpool.RolePayer], accounts[shieldpool.RoleMerkleTree], accounts[shieldpool.RoleTreasury]
	poolAccount := accounts[shieldpool.RolePool]
	of, err := p.byAddress(v, poolAccount.Key())
	if err != nil {
		return err
	}
	if tree.Key() != of.tree.key || treasury.Key() != of.treasury.key {
		return bank.ErrInvalidSeeds
	}
	if poolAccount.Owner() == v.ProgramID {
		return bank.ErrAccountAlreadyInitialized
	}
	if err := p.create(v, payer, poolAccount, of.address, authoritySize); err != nil {
		return err
	}
	size := uint64(p.profile.TreeLength()) //nolint:gosec // a length is not negative
	if err := p.create(v, payer, tree, of.tree, size); err != nil {
		return err
	}
	if err := p.create(v, payer, treasury, of.treasury, 0); err != nil {
		return err
	}
	authority := payer.Key()
	if err := poolAccount.SetData(authority[:]); err != nil {
		return err
	}
	return tree.SetData(p.profile.NewTree(authority).Bytes())
}
