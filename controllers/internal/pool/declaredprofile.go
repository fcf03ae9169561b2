package pool

import (
	"encoding/hex"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// declaredProfile returns the profile that the spec names, with the spec's values for the
// fields that the spec overrides. content is the profile's text from its ConfigMap; nil while
// the ConfigMap is not resolved. For an unresolved ConfigMap and for an invalid spec,
// declaredProfile returns neither a profile nor an error.
func declaredProfile(spec *v1alpha1.RelayPoolSpec, content []byte) (*shieldpool.Profile, error) {
	var (
		p   *shieldpool.Profile
		err error
	)
	switch {
	case spec.Pool.Profile.Name != "":
		p, err = shieldpool.BuiltIn(spec.Pool.Profile.Name)
	case content != nil:
		p, err = shieldpool.ParseProfile(content)
	default:
		return nil, nil //nolint:nilnil // no profile yet, and nothing is wrong
	}
	if err != nil {
		return nil, err
	}
	if spec.Pool.ProgramID != "" {
		if p.ProgramID, err = solana.PublicKeyFromBase58(spec.Pool.ProgramID); err != nil {
			return nil, nil //nolint:nilnil,nilerr // a fault of the spec, which Accepted reports
		}
	}
	if spec.Pool.RootHistorySize != 0 {
		p.RootHistory = int(spec.Pool.RootHistorySize)
	}
	if len(spec.Pool.Mints) == 0 {
		return p, nil
	}
	p.Mints = nil
	for _, m := range spec.Pool.Mints {
		address, err := solana.PublicKeyFromBase58(m.Address)
		if err != nil {
			return nil, nil //nolint:nilnil,nilerr // as above
		}
		mint := shieldpool.Mint{Address: address}
		if n, err := hex.Decode(mint.Field[:], []byte(m.Field)); err != nil || n != len(mint.Field) {
			return nil, nil //nolint:nilnil,nilerr // as above
		}
		p.Mints = append(p.Mints, mint)
	}
	return p, nil
}
