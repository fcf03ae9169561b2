package localnet

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

const (
	// faucetLamports is the faucet's balance at genesis: 500 million SOL.
	faucetLamports = 500_000_000 * solana.LAMPORTS_PER_SOL
	// adminLamports is the balance from which the admin pays for the pool's accounts.
	adminLamports = 100 * solana.LAMPORTS_PER_SOL

	// The compute limit of the faucet's transactions is faucetUnits, which they
	// never reach, plus a count from 0 to faucetCounts-1.
	faucetUnits  = 100_000
	faucetCounts = 1_000_000
)

// wellKnownKey derives a key pair from a name.
func wellKnownKey(name string) solana.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

func (c *Chain) airdrop(to solana.PublicKey, lamports uint64) (solana.Signature, error) {
	signature, err := c.land([]solana.PrivateKey{c.faucet}, c.uniqueLimit(),
		system.NewTransferInstruction(lamports, c.faucet.PublicKey(), to).Build(),
	)
	if err != nil {
		return signature, fmt.Errorf("airdrop %d lamports: %w", lamports, err)
	}
	return signature, nil
}

// uniqueLimit sets a compute limit that no recent transaction of the faucet has. Otherwise two
// equal transfers with one blockhash would be the same transaction, and the second would not land.
func (c *Chain) uniqueLimit() solana.Instruction {
	return solana.NewInstruction(solana.ComputeBudget, nil,
		binary.LittleEndian.AppendUint32([]byte{2}, faucetUnits+c.sent.Add(1)%faucetCounts))
}

// Fund sends lamports from the faucet to an account. When Fund returns, the transaction has landed
// and is not yet confirmed. If the open block is full, the transaction lands in a later block.
func (c *Chain) Fund(to solana.PublicKey, lamports uint64) error {
	_, err := c.airdrop(to, lamports)
	return err
}

// land signs a transaction with the confirmed blockhash, which no fork removes meanwhile, and
// submits it. The transaction executes at once, or waits for a later block when the open block is
// full. The first signer pays. land returns an error when the transaction fails.
func (c *Chain) land(signers []solana.PrivateKey, instructions ...solana.Instruction) (solana.Signature, error) {
	return c.landWith(signers, instructions)
}

func (c *Chain) landWith(signers []solana.PrivateKey, instructions []solana.Instruction, options ...solana.TransactionOption) (solana.Signature, error) {
	var blockhash solana.Hash
	c.bank.Read(bank.Confirmed, func(v bank.View) { blockhash, _ = v.LatestBlockhash() })
	tx, err := solana.NewTransaction(instructions, blockhash, append(options, solana.TransactionPayer(signers[0].PublicKey()))...)
	if err != nil {
		return solana.Signature{}, fmt.Errorf("build transaction: %w", err)
	}
	if _, err := tx.Sign(func(of solana.PublicKey) *solana.PrivateKey {
		for i := range signers {
			if signers[i].PublicKey() == of {
				return &signers[i]
			}
		}
		return nil
	}); err != nil {
		return solana.Signature{}, fmt.Errorf("sign transaction: %w", err)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		return solana.Signature{}, fmt.Errorf("encode transaction: %w", err)
	}
	decoded, err := bank.DecodeTransaction(raw)
	if err != nil {
		return solana.Signature{}, err
	}
	if _, failure := c.bank.Submit(decoded); failure != nil {
		return decoded.Signature(), failure
	}
	return decoded.Signature(), nil
}
