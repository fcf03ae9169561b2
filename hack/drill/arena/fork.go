package arena

import (
	"errors"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

const maxForkedBlocks = 12

// fork undoes the newest blocks. Their transactions are lost, replayed, or each at
// random lost or replayed. It returns the transactions that it undid.
func (n *network) fork(blocks int, fate string) ([]bank.Undone, error) {
	var landsAgain func(*bank.Landed) bool
	switch fate {
	case "replayed":
		landsAgain = bank.LandAgain
	case "mixed":
		landsAgain = func(*bank.Landed) bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.rand.IntN(2) == 0
		}
	}
	undone, err := n.chain.Fork(uint64(blocks), landsAgain) //nolint:gosec // a few blocks
	return undone, errors.Join(err, n.keepPrice())
}
