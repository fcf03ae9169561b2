package shieldpool

import (
	"errors"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/relaypool/relaypool/relay/merkle"
)

// ErrSelfCheck marks an inconsistent tree account: the profile's offsets, byte order, empty
// values or hash differ from the program's.
var ErrSelfCheck = errors.New("merkle tree account fails its self-check")

// SelfCheck confirms that the root equals the newest entry of the root history, and that it
// equals the root recomputed from the frontier. Errors wrap ErrSelfCheck.
func (t *TreeAccount) SelfCheck() error {
	if t.History[t.RootIndex] != t.Root {
		return fmt.Errorf("%w: its root is not the newest of its history: check the profile's offsets and rootHistory", ErrSelfCheck)
	}
	frontier, err := t.frontier()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSelfCheck, err)
	}
	root := merkle.RootOf(t.NextIndex, &frontier)
	if merkle.Bytes(&root) != t.Root {
		return fmt.Errorf("%w: the root recomputed from its frontier differs: check the profile's offsets, byte order and hash", ErrSelfCheck)
	}
	return nil
}

func (t *TreeAccount) frontier() (f [merkle.Height]fr.Element, err error) {
	for i := range t.Frontier {
		if f[i], err = merkle.FromBytes(t.Frontier[i]); err != nil {
			return f, fmt.Errorf("frontier level %d: %w", i, err)
		}
	}
	return f, nil
}
