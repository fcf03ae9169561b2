package bank

import (
	"cmp"
	"fmt"

	"github.com/gagliardetto/solana-go"
)

// Block limits of mainnet at slots of 200 ms in compute units (SIMD-0525, SIMD-0306) and
// the costs of a transaction in addition to the units of its instructions.
const (
	DefaultBlockUnits   = 50_000_000
	DefaultAccountUnits = 20_000_000

	signatureUnits   = 720
	writeLockUnits   = 300
	dataBytesPerUnit = 4
	loadedPageUnits  = 8
	loadedPage       = 32 << 10
	// largestCost is above the cost of any transaction.
	largestCost = 1_500_000
)

// BlockLimits bounds the compute of one block, as the network does. The cost of a
// transaction is the compute units that it used, and a little for its signatures, write
// locks and bytes. A transaction that may cost more than the block has left waits for a
// later block while its blockhash is valid. Waiting transactions land in order of price, the
// highest first.
type BlockLimits struct {
	// Block is the most that all transactions of a block cost together, in
	// units; 0 is DefaultBlockUnits.
	Block uint64
	// Account is the most that all transactions of a block that write the same
	// account cost together, in units; 0 is DefaultAccountUnits.
	Account uint64
}

func (l BlockLimits) withDefaults() BlockLimits {
	return BlockLimits{Block: cmp.Or(l.Block, DefaultBlockUnits), Account: cmp.Or(l.Account, DefaultAccountUnits)}
}

func (l BlockLimits) validate() error {
	if l.Block < largestCost || l.Account < largestCost {
		return fmt.Errorf("bank options: Limits are Block %d and Account %d, want at least %d compute units each, so that any transaction fits",
			l.Block, l.Account, largestCost)
	}
	return nil
}

// cost returns the cost in units of a transaction that consumes a number of compute
// units and loads a number of bytes of account data.
func (m *Message) cost(units, loaded uint64) uint64 {
	total := units + signatureUnits*uint64(m.Header.NumRequiredSignatures)
	total += loadedPageUnits * ((loaded + loadedPage - 1) / loadedPage)
	for _, writable := range m.Writable {
		if writable {
			total += writeLockUnits
		}
	}
	var bytes uint64
	for _, ix := range m.Instructions {
		bytes += uint64(len(ix.Data))
	}
	return total + bytes/dataBytesPerUnit
}

// blockUse is the cost of the open block's transactions, in total and for each
// account that they write.
type blockUse struct {
	total    uint64
	accounts map[solana.PublicKey]uint64
}

func newBlockUse() blockUse { return blockUse{accounts: make(map[solana.PublicKey]uint64)} }

// fits reports whether the transaction exceeds none of the limits.
func (u *blockUse) fits(limits BlockLimits, m *Message, cost uint64) bool {
	for i, key := range m.Keys {
		if m.Writable[i] && u.accounts[key]+cost > limits.Account {
			return false
		}
	}
	return u.total+cost <= limits.Block
}

func (u *blockUse) add(m *Message, cost uint64) {
	u.total += cost
	for i, key := range m.Keys {
		if m.Writable[i] {
			u.accounts[key] += cost
		}
	}
}
