package poolcheck

import (
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// HowToInitialise describes, for a person, how to initialise the pool. The relay and the
// operator never initialise a pool, because the first caller becomes the pool's authority.
func HowToInitialise(p *shieldpool.Pool) string {
	return fmt.Sprintf("initialise the pool with the program's admin tool, with the key that is to become the pool's authority: instruction Initialize of program %s, data %02x, accounts %s; "+
		"if it is initialised already, one of these is wrong: the cluster of the RPC endpoint, the program id, or profile %s",
		p.Profile.ProgramID, p.Profile.Tags.Initialize, initialiseAccounts(p), p.Profile.Name)
}

func initialiseAccounts(p *shieldpool.Pool) (list string) {
	known := map[shieldpool.Role]solana.PublicKey{
		shieldpool.RolePool: p.Address, shieldpool.RoleMerkleTree: p.MerkleTree, shieldpool.RoleTreasury: p.Treasury, shieldpool.RoleSystemProgram: solana.SystemProgramID,
	}
	for i, a := range p.Profile.Accounts.Initialize {
		if i > 0 {
			list += ", "
		}
		key, ok := known[a.Role]
		switch {
		case a.Role == shieldpool.RolePayer:
			list += "the authority (signer)"
		case ok:
			list += key.String()
		default:
			list += string(a.Role)
		}
	}
	return list
}
