package router

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/market"
)

const (
	// tradeAccounts is the number of accounts that the instruction of a swap needs.
	tradeAccounts = 7
	// tablePadding is the number of padding accounts in the lookup table.
	tablePadding = 40

	defaultSlippageBPS = 50
	exactIn            = "ExactIn"
)

// quote is the body of an answer to GET /quote. Amounts are decimal strings.
type quote struct {
	InputMint   solana.PublicKey `json:"inputMint"`
	InAmount    amount           `json:"inAmount"`
	OutputMint  solana.PublicKey `json:"outputMint"`
	OutAmount   amount           `json:"outAmount"`
	Threshold   amount           `json:"otherAmountThreshold"`
	SwapMode    string           `json:"swapMode"`
	SlippageBPS uint64           `json:"slippageBps"`
	PlatformFee *struct{}        `json:"platformFee"`
	PriceImpact string           `json:"priceImpactPct"`
	RoutePlan   []hop            `json:"routePlan"`
	ContextSlot uint64           `json:"contextSlot"`
	TimeTaken   float64          `json:"timeTaken"`
	// Wide and Outside are not fields of Jupiter. They say how to pad the
	// instruction. Clients send them back in the unchanged quote.
	Wide    int  `json:"wideAccounts,omitempty"`
	Outside bool `json:"wideOutside,omitempty"`
}

type hop struct {
	SwapInfo swapInfo `json:"swapInfo"`
	Percent  int      `json:"percent"`
}

type swapInfo struct {
	AMM        solana.PublicKey `json:"ammKey"`
	Label      string           `json:"label"`
	InputMint  solana.PublicKey `json:"inputMint"`
	OutputMint solana.PublicKey `json:"outputMint"`
	InAmount   amount           `json:"inAmount"`
	OutAmount  amount           `json:"outAmount"`
	FeeAmount  amount           `json:"feeAmount"`
	FeeMint    solana.PublicKey `json:"feeMint"`
}

// amount is a number of lamports or of a token's smallest unit. In JSON it is a decimal string.
type amount uint64

// MarshalText writes the decimal digits.
func (a amount) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(a), 10), nil }

// UnmarshalText reads decimal digits.
func (a *amount) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return errors.New("expected an amount as a string of decimal digits, below 2^64")
	}
	*a = amount(n)
	return nil
}

// padding is the address of the i-th padding account. No such account exists.
func padding(i int) solana.PublicKey {
	n := binary.LittleEndian.AppendUint32([]byte("relaypool local chain router padding v1"), uint32(i)) //nolint:gosec // a few hundred
	return sha256.Sum256(n)
}

type quoteParams struct {
	input, output solana.PublicKey
	amount        uint64
	slippage      uint64
	// maxAccounts is the largest number of accounts that the instruction may name.
	maxAccounts int
	// direct asks for a route over one market only.
	direct bool
}

// parseQuoteParams reads the parameters of GET /quote. It ignores Jupiter's other
// parameters, which choose among markets, because each mint has one market.
func parseQuoteParams(q url.Values) (*quoteParams, error) {
	parameter := func(name string, parse func(string) error) error {
		if err := parse(q.Get(name)); err != nil {
			return invalidRequest(fmt.Sprintf("Query parameter %s cannot be parsed: %v", name, err))
		}
		return nil
	}
	number := func(to *uint64, fallback, limit uint64) func(string) error {
		return func(text string) (err error) {
			if *to = fallback; text == "" && fallback > 0 {
				return nil
			}
			if *to, err = strconv.ParseUint(text, 10, 64); err == nil && *to > limit {
				err = fmt.Errorf("expected at most %d", limit)
			}
			return err
		}
	}
	out := &quoteParams{direct: q.Get("onlyDirectRoutes") == "true"}
	var maxAccounts uint64
	for _, err := range []error{
		parameter("inputMint", func(text string) (err error) { out.input, err = solana.PublicKeyFromBase58(text); return err }),
		parameter("outputMint", func(text string) (err error) { out.output, err = solana.PublicKeyFromBase58(text); return err }),
		parameter("amount", number(&out.amount, 0, math.MaxUint64)),
		parameter("slippageBps", number(&out.slippage, defaultSlippageBPS, market.MaxBPS)),
		parameter("maxAccounts", number(&maxAccounts, maxWide, maxWide)),
		parameter("swapMode", func(text string) error {
			if text != "" && text != exactIn {
				return errors.New("the local router supports only ExactIn")
			}
			return nil
		}),
	} {
		if err != nil {
			return nil, err
		}
	}
	out.maxAccounts = int(min(maxAccounts, maxWide))
	return out, nil
}

func (r *Router) quote(req *http.Request, d *draft) (*quote, error) {
	params, err := parseQuoteParams(req.URL.Query())
	if err != nil {
		return nil, err
	}
	if params.input == params.output {
		return nil, &apiError{Message: "Circular arbitrage is disabled", Code: codeCircular}
	}
	m, state, slot := r.market(params.output)
	if params.input != solana.WrappedSol || m == nil {
		return nil, &apiError{Message: "The token is not tradable", Code: codeNotTradable}
	}
	out := state.Output(params.amount)
	if out == 0 || params.maxAccounts < tradeAccounts || params.amount > math.MaxUint64-state.Lamports {
		return nil, noRoute()
	}
	if d.applies(LowThreshold) {
		out *= 2
	}
	answer := &quote{
		InputMint: params.input, InAmount: amount(params.amount), OutputMint: params.output, OutAmount: amount(out),
		Threshold: amount(threshold(out, params.slippage)), SwapMode: exactIn, SlippageBPS: params.slippage,
		PriceImpact: impact(state, params.amount), ContextSlot: slot, TimeTaken: 0.001,
		RoutePlan: []hop{{Percent: 100, SwapInfo: swapInfo{
			AMM: m.Address, Label: "Local market", InputMint: params.input, OutputMint: params.output,
			InAmount: amount(params.amount), OutAmount: amount(out),
			FeeAmount: amount(market.Scale(params.amount, uint64(min(state.FeeBPS, market.MaxBPS)), market.MaxBPS)), FeeMint: params.input,
		}}},
	}
	if !params.direct {
		answer.Wide, answer.Outside = min(d.wide, params.maxAccounts-tradeAccounts), d.outside
	}
	if d.applies(WrongMint) {
		answer.OutputMint = padding(0)
	}
	if d.applies(WrongAmount) {
		answer.InAmount++
	}
	return answer, nil
}

// threshold is the output minus the slippage, rounded up.
func threshold(out, slippageBPS uint64) uint64 {
	return out - market.Scale(out, slippageBPS, market.MaxBPS)
}

// impact returns the price impact of a trade as a fraction, in decimal.
func impact(state *market.State, lamports uint64) string {
	in := float64(lamports)
	return strconv.FormatFloat(in/(float64(state.Lamports)+in), 'f', -1, 64)
}
