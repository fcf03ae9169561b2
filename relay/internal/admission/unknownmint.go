package admission

import (
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// refuseUnknownMint refuses public inputs whose mintAddress is the field value of no mint of the
// pool.
func (a *Admission) refuseUnknownMint(in *shieldpool.PublicInputs) error {
	if _, ok := a.Pool.Profile.MintByField(in.MintAddress); !ok {
		return refusal.New(refusal.UnknownMint, "mintAddress is the field value of no mint of this pool: GET / lists the mints that this relay serves")
	}
	return nil
}
