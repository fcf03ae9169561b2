package localnet

import (
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	tokenprogram "github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token"
)

// maxDecimals is the largest number of decimals with which one token fits in 64
// bits.
const maxDecimals = 19

// mintAuthority is the mint and freeze authority of the mints that the chain
// creates. Like the faucet's key it is not secret.
func mintAuthority() solana.PrivateKey { return wellKnownKey("relaypool local chain mint authority") }

// CreateMint creates a mint of SPL Token with 0 to 19 decimals and returns its
// address. MintTo works with the mint, and Freeze does if freezeAuthority is nil. When
// CreateMint returns, the transaction has landed and is not yet confirmed.
func (c *Chain) CreateMint(decimals uint8, freezeAuthority *solana.PublicKey) (solana.PublicKey, error) {
	if decimals > maxDecimals {
		return solana.PublicKey{}, fmt.Errorf("make mint: decimals is %d, expected 0 to %d", decimals, maxDecimals)
	}
	mint, err := solana.NewRandomPrivateKey()
	if err != nil {
		return solana.PublicKey{}, fmt.Errorf("make mint: %w", err)
	}
	authority := mintAuthority().PublicKey()
	if freezeAuthority == nil {
		freezeAuthority = &authority
	}
	faucet := c.faucet.PublicKey()
	if _, err := c.land([]solana.PrivateKey{c.faucet, mint},
		system.NewCreateAccountInstruction(c.rent().Exemption(bank.TokenMintSize), bank.TokenMintSize, solana.TokenProgramID, faucet, mint.PublicKey()).Build(),
		tokenprogram.NewInitializeMint2Instruction(decimals, authority, *freezeAuthority, mint.PublicKey()).Build(),
	); err != nil {
		return solana.PublicKey{}, fmt.Errorf("make mint: %w", err)
	}
	return mint.PublicKey(), nil
}

func (c *Chain) rent() (rate bank.Rent) {
	c.bank.Read(bank.Processed, func(v bank.View) { rate = v.Rent() })
	return rate
}

// MintTo mints an amount, in the smallest unit, to the owner's associated token
// account, which it creates if missing. The mint is one of CreateMint, the output
// mint or the native mint. MintTo returns the account's address and the
// transaction's signature.
func (c *Chain) MintTo(mint, owner solana.PublicKey, amount uint64) (account solana.PublicKey, signature solana.Signature, err error) {
	if account, _, err = solana.FindAssociatedTokenAddress(owner, mint); err != nil {
		return account, signature, err
	}
	faucet := c.faucet.PublicKey()
	create, err := token.CreateIdempotent(faucet, owner, mint)
	if err != nil {
		return account, signature, err
	}
	instructions, signers := []solana.Instruction{c.uniqueLimit(), create}, []solana.PrivateKey{c.faucet}
	if mint == solana.WrappedSol {
		instructions = append(instructions, system.NewTransferInstruction(amount, faucet, account).Build(),
			tokenprogram.NewSyncNativeInstruction(account).Build())
	} else {
		authority := mintAuthority()
		signers = append(signers, authority)
		instructions = append(instructions,
			tokenprogram.NewMintToInstruction(amount, mint, account, authority.PublicKey(), nil).Build())
	}
	if signature, err = c.land(signers, instructions...); err != nil {
		err = fmt.Errorf("mint %d tokens: %w", amount, err)
	}
	return account, signature, err
}

// Freeze freezes an owner's associated token account of the output mint or of a
// mint that CreateMint created. No tokens can then be sent from the account or to it.
func (c *Chain) Freeze(mint, owner solana.PublicKey) (solana.Signature, error) {
	return c.setFrozen(mint, owner, true)
}

// Thaw undoes Freeze.
func (c *Chain) Thaw(mint, owner solana.PublicKey) (solana.Signature, error) {
	return c.setFrozen(mint, owner, false)
}

func (c *Chain) setFrozen(mint, owner solana.PublicKey, frozen bool) (solana.Signature, error) {
	account, _, err := solana.FindAssociatedTokenAddress(owner, mint)
	if err != nil {
		return solana.Signature{}, err
	}
	authority := mintAuthority()
	verb, instruction := "thaw", solana.Instruction(tokenprogram.NewThawAccountInstruction(account, mint, authority.PublicKey(), nil).Build())
	if frozen {
		verb, instruction = "freeze", tokenprogram.NewFreezeAccountInstruction(account, mint, authority.PublicKey(), nil).Build()
	}
	signature, err := c.land([]solana.PrivateKey{c.faucet, authority}, c.uniqueLimit(), instruction)
	if err != nil {
		return signature, fmt.Errorf("%s account: %w", verb, err)
	}
	return signature, nil
}
