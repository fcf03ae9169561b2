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

// The defaults of MarketOptions: 150 development dollars a SOL, deep enough that
// a hundred SOL move the price by two per cent.
const (
	DefaultReserveLamports = 10_000 * solana.LAMPORTS_PER_SOL
	DefaultReserveTokens   = 1_500_000 * OutputUnit
	DefaultMarketFeeBPS    = 30
)

// What every chain's output mint has.
const (
	// OutputDecimals are the decimals of development dollars, and OutputUnit is
	// one dollar.
	OutputDecimals = 6
	OutputUnit     = 1_000_000

	// marketStock are the tokens that the market has from the start; it gets more
	// when reserves are set that need them.
	marketStock = 1_000_000_000 * OutputUnit
)

// MarketOptions is the market that every chain has from the start, on which
// wrapped SOL is swapped for development dollars. The zero value of each field
// is its default.
type MarketOptions struct {
	// Reserves are the price and the depth: market.Reserves.
	Reserves market.Reserves
	// FeeBPS is below 10000.
	FeeBPS uint16
}

func (o MarketOptions) withDefaults() MarketOptions {
	if o.Reserves == (market.Reserves{}) {
		o.Reserves = market.Reserves{Lamports: DefaultReserveLamports, Tokens: DefaultReserveTokens}
	}
	if o.FeeBPS == 0 {
		o.FeeBPS = DefaultMarketFeeBPS
	}
	return o
}

func (o MarketOptions) validate() error {
	if o.Reserves.Lamports == 0 || o.Reserves.Tokens == 0 || o.Reserves.Tokens > marketStock || o.FeeBPS >= market.MaxBPS {
		return fmt.Errorf("localnet options: Market has reserves of %d lamports and %d tokens and a fee of %d basis points, want both reserves, at most %d tokens, and a fee below %d",
			o.Reserves.Lamports, o.Reserves.Tokens, o.FeeBPS, uint64(marketStock), market.MaxBPS)
	}
	return nil
}

// OutputMint is the mint of development dollars, which every chain has. MintTo,
// Freeze and Thaw work with it.
func OutputMint() solana.PublicKey {
	return wellKnownKey("relaypool local chain development USD").PublicKey()
}

// RouterTable is the lookup table that the router's answers name.
func RouterTable() solana.PublicKey {
	return wellKnownKey("relaypool local chain router table").PublicKey()
}

// marketAccounts are what the market is made of at genesis: the mint, market and
// vaults, and the router's lookup table.
func marketAccounts(at *market.Market, opts MarketOptions) map[solana.PublicKey]bank.Account {
	authority := mintAuthority().PublicKey()
	accounts := at.Genesis(authority, opts.Reserves, opts.FeeBPS, marketStock)
	accounts[at.Mint] = token.MintAccount(tokenprogram.Mint{
		MintAuthority: &authority, Supply: marketStock, Decimals: OutputDecimals, IsInitialized: true, FreezeAuthority: &authority,
	})
	accounts[RouterTable()] = bank.LookupTable(router.TableAddresses(at)...)
	return accounts
}

// exchange is the chain's market with its router.
type exchange struct {
	market *market.Market
	router *router.Router
}

// Router is the swap router over the chain's market, honest and faultless by
// default. It is a handler; ListenRouter opens an address for it.
func (c *Chain) Router() *router.Router { return c.exchange.router }

// ListenRouter serves the router on a TCP address until Close and returns the
// base URL of its API.
func (c *Chain) ListenRouter(addr string) (url string, err error) {
	return c.listen("swap router", addr, c.exchange.router)
}

// MarketState is the market of development dollars now.
func (c *Chain) MarketState() (*market.State, error) {
	var account *bank.Account
	c.bank.Read(bank.Processed, func(v bank.View) { account = v.Account(c.exchange.market.Address) })
	if account == nil {
		return nil, errors.New("read market: it does not exist")
	}
	return market.ParseState(account.Data)
}

// SetReserves sets the price and the depth of the market of development dollars,
// regardless of swaps before. The change has landed but is not yet confirmed,
// and a fork may undo it like any transaction; when this block is full it lands
// in a later one.
func (c *Chain) SetReserves(reserves market.Reserves) error {
	at, authority := c.exchange.market, mintAuthority()
	signers := []solana.PrivateKey{c.faucet.key, authority}
	var held uint64
	c.bank.Read(bank.Processed, func(v bank.View) {
		held = bank.ParseToken(v.Account(at.VaultTokens).Data).Amount
	})
	instructions := []solana.Instruction{c.differing()}
	if reserves.Tokens > held {
		instructions = append(instructions,
			tokenprogram.NewMintToInstruction(reserves.Tokens-held, at.Mint, at.VaultTokens, authority.PublicKey(), nil).Build())
	}
	if _, err := c.land(signers, append(instructions, at.SetReserves(authority.PublicKey(), reserves))...); err != nil {
		return fmt.Errorf("set market's reserves: %w", err)
	}
	return nil
}

// merged returns the accounts of all maps; the later of two with one address.
func merged(of ...map[solana.PublicKey]bank.Account) map[solana.PublicKey]bank.Account {
	out := make(map[solana.PublicKey]bank.Account)
	for _, accounts := range of {
		maps.Copy(out, accounts)
	}
	return out
}
