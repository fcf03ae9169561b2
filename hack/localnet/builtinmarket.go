package localnet

import (
	"errors"
	"fmt"
	"maps"

	"github.com/gagliardetto/solana-go"
	tokenprogram "github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/hack/localnet/token"
)

// The market at genesis: a price of 150 development dollars a SOL, and a fee in basis points. It
// is deep enough that selling 100 SOL moves the price by about 2 per cent.
const (
	DefaultReserveLamports = 10_000 * solana.LAMPORTS_PER_SOL
	DefaultReserveTokens   = 1_500_000 * OutputUnit
	DefaultMarketFeeBPS    = 30
)

// The output mint and its tokens.
const (
	// OutputDecimals are the decimals of development dollars, and OutputUnit is one dollar.
	OutputDecimals = 6
	OutputUnit     = 1_000_000

	// marketStock is the balance of the market's token vault at genesis.
	// SetReserves mints more tokens when the reserves need them.
	marketStock = 1_000_000_000 * OutputUnit
)

// OutputMint is the mint of development dollars, which every chain has. MintTo,
// Freeze and Thaw work with this mint.
func OutputMint() solana.PublicKey {
	return wellKnownKey("relaypool local chain development USD").PublicKey()
}

// RouterTable is the address of the lookup table that the router's answers name.
func RouterTable() solana.PublicKey {
	return wellKnownKey("relaypool local chain router table").PublicKey()
}

// marketAccounts are the market's accounts at genesis: output mint, market, vaults
// and the router's lookup table.
func marketAccounts(m *market.Market) map[solana.PublicKey]bank.Account {
	authority := mintAuthority().PublicKey()
	accounts := m.Genesis(authority, market.Reserves{Lamports: DefaultReserveLamports, Tokens: DefaultReserveTokens}, DefaultMarketFeeBPS, marketStock)
	accounts[m.Mint] = token.MintAccount(tokenprogram.Mint{
		MintAuthority: &authority, Supply: marketStock, Decimals: OutputDecimals, IsInitialized: true, FreezeAuthority: &authority,
	})
	accounts[RouterTable()] = bank.LookupTable(router.TableAddresses(m)...)
	return accounts
}

// Router is the swap router over the chain's market, at first without faults and
// lies. The router is a handler; ListenRouter serves it on an address.
func (c *Chain) Router() *router.Router { return c.router }

// ListenRouter serves the router on a TCP address until Close and returns the base URL of its API.
func (c *Chain) ListenRouter(addr string) (url string, err error) {
	return c.listen("swap router", addr, c.router)
}

// MarketState is the market's state in the open slot.
func (c *Chain) MarketState() (*market.State, error) {
	var account *bank.Account
	c.bank.Read(bank.Processed, func(v bank.View) { account = v.Account(c.market.Address) })
	if account == nil {
		return nil, errors.New("read market: it does not exist")
	}
	return market.ParseState(account.Data)
}

// SetReserves sets the price and the depth of the market, whatever was swapped
// before. When SetReserves returns, its transaction has landed and is not yet
// confirmed. If the open block is full, the transaction lands in a later block.
func (c *Chain) SetReserves(reserves market.Reserves) error {
	m, authority := c.market, mintAuthority()
	signers := []solana.PrivateKey{c.faucet, authority}
	var vaultTokens uint64
	c.bank.Read(bank.Processed, func(v bank.View) {
		vaultTokens = bank.ParseToken(v.Account(m.VaultTokens).Data).Amount
	})
	instructions := []solana.Instruction{c.uniqueLimit()}
	if reserves.Tokens > vaultTokens {
		instructions = append(instructions,
			tokenprogram.NewMintToInstruction(reserves.Tokens-vaultTokens, m.Mint, m.VaultTokens, authority.PublicKey(), nil).Build())
	}
	if _, err := c.land(signers, append(instructions, m.SetReserves(authority.PublicKey(), reserves))...); err != nil {
		return fmt.Errorf("set market's reserves: %w", err)
	}
	return nil
}

// merged returns the accounts of all maps. For an address in several maps the last map decides.
func merged(sets ...map[solana.PublicKey]bank.Account) map[solana.PublicKey]bank.Account {
	out := make(map[solana.PublicKey]bank.Account)
	for _, accounts := range sets {
		maps.Copy(out, accounts)
	}
	return out
}
