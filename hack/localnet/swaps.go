package localnet

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/gagliardetto/solana-go"
	tokenprogram "github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/lookuptable"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/hack/localnet/token"
	"github.com/relaypool/relaypool/hack/localnet/token/layout"
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
	// OutputDecimals are those of development dollars, and OutputUnit is one
	// dollar.
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
	accounts[at.Mint] = token.MintAccount(layout.Mint{
		Authority: &authority, Supply: marketStock, Decimals: OutputDecimals, Initialized: true, FreezeAuthority: &authority,
	})
	accounts[RouterTable()] = lookuptable.Table(router.TableAddresses(at))
	return accounts
}

// exchange is the chain's market with its router.
type exchange struct {
	market *market.Market
	router *router.Router
	urls   []string
}

// Router is the swap router over the chain's market, honest and faultless until
// its settings say otherwise. It is a handler; ListenRouter gives it an address.
func (c *Chain) Router() *router.Router { return c.exchange.router }

// ListenRouter serves the router on a TCP address until Close and returns the
// base URL of its API.
func (c *Chain) ListenRouter(addr string) (url string, err error) {
	if url, err = c.listen("swap router", addr, c.exchange.router); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exchange.urls = append(c.exchange.urls, url)
	return url, nil
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
// whatever swaps have made of them. It has landed but is not yet confirmed, and
// a fork may undo it as it may any transaction; when this block is full it lands
// in a later one.
func (c *Chain) SetReserves(reserves market.Reserves) error {
	at, authority := c.exchange.market, mintAuthority()
	signers := []solana.PrivateKey{c.faucet.key, authority}
	var held uint64
	var err error
	c.bank.Read(bank.Processed, func(v bank.View) {
		var vault *layout.Account
		if vault, err = layout.ParseAccount(v.Account(at.VaultTokens).Data); err == nil {
			held = vault.Amount
		}
	})
	if err != nil {
		return fmt.Errorf("set market's reserves: %w", err)
	}
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

// marketAnswer is the market on the admin port.
type marketAnswer struct {
	Mint            solana.PublicKey `json:"mint"`
	Decimals        int              `json:"decimals"`
	Program         solana.PublicKey `json:"program"`
	Address         solana.PublicKey `json:"address"`
	ReserveLamports uint64           `json:"reserveLamports"`
	ReserveTokens   uint64           `json:"reserveTokens"`
	FeeBPS          uint16           `json:"feeBps"`
	// Price is in dollars a SOL.
	Price float64 `json:"price"`
}

func (c *Chain) adminMarket(*http.Request) (any, error) {
	state, err := c.MarketState()
	if err != nil {
		return nil, err
	}
	return &marketAnswer{
		Mint: state.Mint, Decimals: OutputDecimals, Program: market.ProgramID, Address: c.exchange.market.Address,
		ReserveLamports: state.Lamports, ReserveTokens: state.Tokens, FeeBPS: state.FeeBPS,
		Price: float64(state.Tokens) / OutputUnit / (float64(state.Lamports) / float64(solana.LAMPORTS_PER_SOL)),
	}, nil
}

func (c *Chain) adminSetMarket(r *http.Request) (any, error) {
	var ask struct {
		ReserveLamports uint64 `json:"reserveLamports"`
		ReserveTokens   uint64 `json:"reserveTokens"`
	}
	if err := read(r, &ask); err != nil {
		return nil, err
	}
	if ask.ReserveLamports == 0 || ask.ReserveTokens == 0 {
		return nil, fmt.Errorf("reserveLamports is %d and reserveTokens is %d, expected both, more than 0", ask.ReserveLamports, ask.ReserveTokens)
	}
	if err := c.SetReserves(market.Reserves{Lamports: ask.ReserveLamports, Tokens: ask.ReserveTokens}); err != nil {
		return nil, err
	}
	return c.adminMarket(r)
}

// routerAnswer is the router on the admin port.
type routerAnswer struct {
	URLs     []string         `json:"urls"`
	Table    solana.PublicKey `json:"lookupTable"`
	Settings router.Settings  `json:"settings"`
	Stats    router.Stats     `json:"stats"`
}

func (c *Chain) adminRouter(*http.Request) (any, error) {
	c.mu.Lock()
	urls := append([]string{}, c.exchange.urls...)
	c.mu.Unlock()
	return &routerAnswer{URLs: urls, Table: RouterTable(), Settings: c.Router().Settings(), Stats: c.Router().Stats()}, nil
}

func (c *Chain) adminSetRouter(r *http.Request) (any, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	settings, err := router.ParseSettings(raw)
	if err != nil {
		return nil, err
	}
	if err := c.Router().Set(settings); err != nil {
		return nil, err
	}
	return c.adminRouter(r)
}

func (c *Chain) adminClearRouter(r *http.Request) (any, error) {
	if err := c.Router().Set(router.Settings{}); err != nil {
		return nil, err
	}
	return c.adminRouter(r)
}

// merged gives the accounts of all maps; of two with one address the later.
func merged(of ...map[solana.PublicKey]bank.Account) map[solana.PublicKey]bank.Account {
	out := make(map[solana.PublicKey]bank.Account)
	for _, accounts := range of {
		maps.Copy(out, accounts)
	}
	return out
}
