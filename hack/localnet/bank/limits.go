package bank

import (
	"cmp"
	"fmt"

	"github.com/gagliardetto/solana-go"
)

// Block limits of mainnet at slots of 200 ms in compute units (SIMD-0525, SIMD-0306), the length of the waiting list, and
// the costs of a transaction in addition to the units of its instructions.
const (
	DefaultBlockUnits   = 50_000_000
	DefaultAccountUnits = 20_000_000
	DefaultWaiting      = 10_000

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
	// Waiting is the largest number of transactions that wait. One more replaces the
	// transaction with the lowest price. 0 is DefaultWaiting.
	Waiting int
}

func (l BlockLimits) withDefaults() BlockLimits {
	return BlockLimits{
		Block:   cmp.Or(l.Block, DefaultBlockUnits),
		Account: cmp.Or(l.Account, DefaultAccountUnits),
		Waiting: cmp.Or(l.Waiting, DefaultWaiting),
	}
}

func (l BlockLimits) validate() error {
	if l.Block < largestCost || l.Account < largestCost || l.Waiting < 0 {
		return fmt.Errorf("bank options: Limits are Block %d, Account %d and Waiting %d, want Block and Account of at least %d compute units, so that any transaction fits, and Waiting of 0 or more",
			l.Block, l.Account, l.Waiting, largestCost)
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

// checkLimits returns the error of the limit that the transaction would exceed, or nil.
func (u *blockUse) checkLimits(limits BlockLimits, m *Message, cost uint64) *TransactionError {
	if u.total+cost > limits.Block {
		return newError(WouldExceedMaxBlockCostLimit)
	}
	for i, key := range m.Keys {
		if m.Writable[i] && u.accounts[key]+cost > limits.Account {
			return newError(WouldExceedMaxAccountCostLimit)
		}
	}
	return nil
}

func (u *blockUse) add(m *Message, cost uint64) {
	u.total += cost
	for i, key := range m.Keys {
		if m.Writable[i] {
			u.accounts[key] += cost
		}
	}
}
