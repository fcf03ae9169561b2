package poolcheck

import (
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

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
