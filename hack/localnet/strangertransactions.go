package localnet

import (
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
)

const (
	// DefaultStrangers is the default of Options.Strangers.
	DefaultStrangers = 5

	// Compute and loaded data of a transfer.
	strangerUnits      = 1_000
	strangerLoadedData = 1 << 16
)

// landStrangers puts the transactions of strangers into the open block: three of five are of version
// 1, as on mainnet, and the others have none. An error is one of a full block, in which they do
// not fit.
func (c *Chain) landStrangers() {
	for n := range c.opts.Strangers {
		stranger := c.faucet
		transfer := system.NewTransferInstruction(1, stranger.PublicKey(), stranger.PublicKey()).Build()
		var err error
		if n%5 < 3 {
			// The limit makes each transaction another one.
			units := strangerUnits + c.sent.Add(1)%faucetCounts
			_, err = c.landWith([]solana.PrivateKey{stranger}, []solana.Instruction{transfer}, solana.TransactionV1Config(
				solana.TransactionConfig{}.WithPriorityFee(1).WithComputeUnitLimit(units).WithLoadedAccountsDataSizeLimit(strangerLoadedData)))
		} else {
			_, err = c.land([]solana.PrivateKey{stranger}, c.uniqueLimit(), transfer)
		}
		if err != nil {
			c.opts.Log.Debug("transaction of a stranger not landed", "error", err)
			return
		}
	}
}
