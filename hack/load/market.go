package load

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/wallet/trade"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// minimumBPS is the share of a quote that wallets require as their minimum: 99 %.
	minimumBPS = 9_900
	// unreachable is the factor between the quote and a minimum that the market never offers.
	unreachable = 1000
)

// Market is where clients swap. All fields are required.
type Market struct {
	// Pool gives the net amount of a swap and the address of its state.
	Pool *shieldpool.Pool
	// Mint is the mint that clients buy.
	Mint solana.PublicKey
	// Quote returns the current output of the mint for an amount of lamports, in the mint's
	// smallest unit, like trade.Router.Quote.
	Quote func(ctx context.Context, mint solana.PublicKey, lamports uint64) (out uint64, err error)
}

// check requires all fields of a market, and a market when there are swaps.
func (m *Market) check(swaps float64) error {
	switch {
	case m == nil && swaps > 0:
		return fmt.Errorf("load options: Swaps is %g and Market is missing", swaps)
	case m != nil && (m.Pool == nil || m.Mint.IsZero() || m.Quote == nil):
		return errors.New("load options: a Market's Pool, Mint and Quote are required")
	}
	return nil
}

// Swap is what a client knows of its swap when it sends the request. The Recipient of
// the request is the wallet that owns the terms' account.
type Swap struct {
	// Terms are the output mint, the recipient's token account and the minimum.
	Terms shieldpool.SwapTerms
	// Lamports is the amount to swap: the gross amount less the pool's fee.
	Lamports uint64
	// State is the account that holds the lamports between the two legs.
	State solana.PublicKey
	// Quoted is the router's quote when the client chose its minimum.
	Quoted uint64
	// Unreachable says that the minimum is above every price of the market, so that only a
	// refund is correct.
	Unreachable bool
	// Digits says that the client sends the minimum as a JSON number instead of a string.
	Digits bool
}

// price completes a swap with a minimum that follows the router's quote for its
// lamports, and binds the inputs to the terms.
func (s *spend) price(m *Market, quoted uint64) error {
	minimum := max(1, trade.Minimum(quoted, minimumBPS))
	if s.swap.Unreachable {
		if high, low := bits.Mul64(quoted, unreachable); high == 0 {
			minimum = low
		} else {
			minimum = 1<<64 - 1
		}
	}
	var err error
	if s.swap.Terms, err = trade.Terms(s.recipient, m.Mint, minimum); err != nil {
		return err
	}
	if s.swap.State, _, err = m.Pool.SwapState(s.inputs.Nullifiers[0]); err != nil {
		return err
	}
	s.swap.Quoted = quoted
	s.inputs.ExtDataHash = shieldpool.ExtDataHash(shieldpool.Destination{Recipient: s.recipient, Swap: &s.swap.Terms})
	return nil
}

// price asks the router until it quotes. It returns false when the client was stopped
// before, or the swap has no address.
func (c *client) price(ctx context.Context) bool {
	for try := 0; ; try++ {
		quoted, err := c.quote(ctx)
		if err == nil {
			return c.spend.price(c.Market, quoted) == nil
		}
		if !c.pause(ctx, 0, try) {
			return false
		}
	}
}

func (c *client) quote(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout/3)
	defer cancel()
	return c.Market.Quote(ctx, c.Market.Mint, c.spend.swap.Lamports)
}
