package poolcheck

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

func (f *Facts) mint(address solana.PublicKey) Check {
	c := Check{Name: CheckMint, State: OK, Subject: address.String(), Expected: "a mint of the SPL Token program"}
	a, read := f.Accounts[address]
	switch {
	case !read:
		return f.unreadCheck(c)
	case a == nil:
		c.Found = "no account"
	case a.Owner.Equals(solana.Token2022ProgramID):
		c.Found = "an account of the Token-2022 program, which the pool does not support"
	case !a.Owner.Equals(solana.TokenProgramID):
		c.Found = "an account of program " + a.Owner.String()
	default:
		err := shieldpool.CheckTokenMint(a.Data)
		if err == nil {
			c.Found = "a mint of the SPL Token program"
			return c
		}
		c.Found = err.Error()
	}
	c.State, c.Reason, c.Remedy = Failed, ReasonMintUnknown, "correct the list of mints: address and field are those of the pool's own assets"
	return c
}
