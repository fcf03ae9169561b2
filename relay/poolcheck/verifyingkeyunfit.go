package poolcheck

import (
	"encoding/hex"
	"fmt"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

func (f *Facts) verifyingKey() Check {
	c := Check{Name: CheckVerifyingKey, State: OK, Expected: fmt.Sprintf("a key with %d public signals", shieldpool.SignalCount)}
	k := f.Target.Key
	if k == nil {
		c.State, c.Reason = Unknown, ReasonConfigurationIncomplete
		c.Found, c.Remedy = "the verifying key is not known", "give snarkjs' verification_key.json of the pool's circuit"
		return c
	}
	c.Found = fmt.Sprintf("a key with %d public signals, hash %s", k.Publics, hex.EncodeToString(k.Hash[:]))
	switch {
	case k.Publics != shieldpool.SignalCount:
		c.State, c.Reason, c.Remedy = Failed, ReasonVerifyingKeyUnfit, "give the key of the pool's circuit"
	case !IsDevelopmentKey(k.Hash):
	case f.GenesisErr != nil:
		c.State, c.Reason = Unknown, ReasonChainUnavailable
		c.Found = "the development key, and the genesis hash could not be read"
	case !KeyAllowed(k.Hash, f.Genesis):
		c.State, c.Reason = Failed, ReasonVerifyingKeyUnfit
		c.Expected = "the key of the pool's own circuit"
		c.Found = "the development key, under which anybody can forge proofs, and which is accepted only with the local chain's genesis hash " + shieldpool.DevelopmentGenesisHash.String()
		c.Remedy = "give the pool's own verification_key.json"
	}
	return c
}
