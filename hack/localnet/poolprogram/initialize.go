package poolprogram

import (
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// authoritySize is the size of the pool account's data, the authority's address, in bytes.
const authoritySize = 32

// initialize creates the accounts of a pool: pool, tree and treasury. The payer
// becomes the pool's authority. It succeeds once for each pool.
func (p *program) initialize(v *bank.Invocation) error {
	if len(v.Data) != 1 {
		return v.Refuse(errInvalidInstructionData, "Initialize takes no data but its tag")
	}
	accounts, err := roles(v, 0, p.profile.Accounts.Initialize)
	if err != nil {
		return err
	}
	payer, tree, treasury := accounts[shieldpool.RolePayer], accounts[shieldpool.RoleMerkleTree], accounts[shieldpool.RoleTreasury]
	poolAccount := accounts[shieldpool.RolePool]
	pool, err := p.byAddress(v, poolAccount.Key())
	if err != nil {
		return err
	}
	if tree.Key() != pool.tree.key || treasury.Key() != pool.treasury.key {
		return bank.ErrInvalidSeeds
	}
	if poolAccount.Owner() == v.ProgramID {
		return bank.ErrAccountAlreadyInitialized
	}
	if err := v.CreateAccount(payer, poolAccount, authoritySize, v.ProgramID, pool.address.seeds); err != nil {
		return err
	}
	size := uint64(p.profile.TreeLength()) //nolint:gosec // a length is not negative
	if err := v.CreateAccount(payer, tree, size, v.ProgramID, pool.tree.seeds); err != nil {
		return err
	}
	if err := v.CreateAccount(payer, treasury, 0, v.ProgramID, pool.treasury.seeds); err != nil {
		return err
	}
	authority := payer.Key()
	if err := poolAccount.SetData(authority[:]); err != nil {
		return err
	}
	return tree.SetData(p.profile.NewTree(authority).Bytes())
}
