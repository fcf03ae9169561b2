package rpc

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token/layout"
)

// tokenAmount is an amount of tokens in all the forms that a node gives.
type tokenAmount struct {
	UIAmount       *float64 `json:"uiAmount"`
	Decimals       uint8    `json:"decimals"`
	Amount         string   `json:"amount"`
	UIAmountString string   `json:"uiAmountString"`
}

func encodeAmount(amount uint64, decimals uint8) tokenAmount {
	whole := float64(amount) / math.Pow10(int(decimals))
	return tokenAmount{
		UIAmount: &whole, Decimals: decimals, Amount: strconv.FormatUint(amount, 10),
		UIAmountString: uiAmountString(amount, decimals),
	}
}

// uiAmountString gives an amount as a decimal fraction without zeros at its end.
func uiAmountString(amount uint64, decimals uint8) string {
	if decimals == 0 {
		return strconv.FormatUint(amount, 10)
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	text := new(big.Rat).SetFrac(new(big.Int).SetUint64(amount), unit).FloatString(int(decimals))
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// encodeTokenBalances gives the token balances of a transaction. Unlike the
// other methods history has null for the fraction of nothing.
func encodeTokenBalances(balances []bank.TokenBalance) []any {
	out := make([]any, len(balances))
	for i, b := range balances {
		amount := encodeAmount(b.Amount, b.Decimals)
		if b.Amount == 0 {
			amount.UIAmount = nil
		}
		out[i] = map[string]any{
			"accountIndex": b.Index, "mint": b.Mint.String(), "owner": b.Owner.String(),
			"programId": b.Program.String(), "uiTokenAmount": amount,
		}
	}
	return out
}

// accountsAt finds accounts by their addresses; nil where there is none.
type accountsAt func(solana.PublicKey) *bank.Account

// parseTokens gives the jsonParsed form of a mint or a token account, whose
// mint it finds among the accounts, or nil for anything else.
func parseTokens(a *bank.Account, accounts accountsAt) any {
	if a.Owner != solana.TokenProgramID {
		return nil
	}
	var kind string
	var info map[string]any
	switch len(a.Data) {
	case layout.MintSize:
		mint, err := layout.ParseMint(a.Data)
		if err != nil || !mint.Initialized {
			return nil
		}
		kind, info = "mint", map[string]any{
			"mintAuthority": optionalText(mint.Authority), "supply": strconv.FormatUint(mint.Supply, 10),
			"decimals": mint.Decimals, "isInitialized": true, "freezeAuthority": optionalText(mint.FreezeAuthority),
		}
	case layout.AccountSize:
		token, err := layout.ParseAccount(a.Data)
		if err != nil || token.State == layout.Uninitialized {
			return nil
		}
		decimals, ok := decimalsOf(token.Mint, accounts)
		if !ok {
			return nil
		}
		kind, info = "account", parsedAccount(token, decimals)
	default:
		return nil
	}
	return map[string]any{
		"program": "spl-token", "space": len(a.Data),
		"parsed": map[string]any{"type": kind, "info": info},
	}
}

func parsedAccount(token *layout.Account, decimals uint8) map[string]any {
	info := map[string]any{
		"mint": token.Mint.String(), "owner": token.Owner.String(), "state": token.State.String(),
		"isNative": token.Native != nil, "tokenAmount": encodeAmount(token.Amount, decimals),
	}
	if token.Native != nil {
		info["rentExemptReserve"] = encodeAmount(*token.Native, decimals)
	}
	if token.Delegate != nil {
		info["delegate"], info["delegatedAmount"] = token.Delegate.String(), encodeAmount(token.Delegated, decimals)
	}
	if token.CloseAuthority != nil {
		info["closeAuthority"] = token.CloseAuthority.String()
	}
	return info
}

func optionalText(key *solana.PublicKey) any {
	if key == nil {
		return nil
	}
	return key.String()
}

func decimalsOf(mint solana.PublicKey, accounts accountsAt) (decimals uint8, ok bool) {
	account := accounts(mint)
	if account == nil || account.Owner != solana.TokenProgramID {
		return 0, false
	}
	parsed, err := layout.ParseMint(account.Data)
	if err != nil || !parsed.Initialized {
		return 0, false
	}
	return parsed.Decimals, true
}

func (c *call) getTokenAccountBalance(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	key, err := p.key()
	if err != nil {
		return nil, err
	}
	var cfg contextConfig
	if err := p.decode(1, &cfg); err != nil {
		return nil, err
	}
	var out any
	var failure *Error
	if err := c.read(cfg, func(v view) {
		var amount tokenAmount
		amount, failure = v.tokenBalance(key)
		out = answerAt(v.Slot(), amount)
	}); err != nil {
		return nil, err
	}
	return out, failure
}

func (v view) tokenBalance(key solana.PublicKey) (tokenAmount, *Error) {
	account := v.Account(key)
	if account == nil {
		return tokenAmount{}, invalidParams("Invalid param: could not find account")
	}
	token, err := layout.ParseAccount(account.Data)
	if account.Owner != solana.TokenProgramID || err != nil || token.State == layout.Uninitialized {
		return tokenAmount{}, invalidParams("Invalid param: not a Token account")
	}
	decimals, ok := decimalsOf(token.Mint, v.Account)
	if !ok {
		return tokenAmount{}, invalidParams("Invalid param: could not find mint")
	}
	return encodeAmount(token.Amount, decimals), nil
}

func (c *call) getTokenAccountsByOwner(p params) (any, *Error) {
	if err := p.want(2, 3); err != nil {
		return nil, err
	}
	owner, err := p.key()
	if err != nil {
		return nil, err
	}
	filter, err := p.tokenFilter(1)
	if err != nil {
		return nil, err
	}
	cfg := accountConfig{Encoding: encodingBinary}
	if err := p.decode(2, &cfg); err != nil {
		return nil, err
	}
	var out any
	var failure *Error
	if err := c.read(cfg.contextConfig, func(v view) {
		var found []any
		found, failure = v.tokensOf(owner, filter, &cfg)
		out = answerAt(v.Slot(), found)
	}); err != nil {
		return nil, err
	}
	return out, failure
}

// tokenFilter is which token accounts of an owner are asked for: of one mint,
// or of one token program.
type tokenFilter struct {
	mint, program *solana.PublicKey
}

func (p params) tokenFilter(i int) (filter tokenFilter, err *Error) {
	var fields struct {
		Mint      *string `json:"mint"`
		ProgramID *string `json:"programId"`
	}
	decoder := json.NewDecoder(bytes.NewReader(p[i]))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&fields) != nil || (fields.Mint == nil) == (fields.ProgramID == nil) {
		return filter, invalidParams("Invalid params: expected an object with either `mint` or `programId`")
	}
	text, to := fields.Mint, &filter.mint
	if text == nil {
		text, to = fields.ProgramID, &filter.program
	}
	key, err := parseKey(*text)
	*to = &key
	return filter, err
}

// tokensOf encodes the token accounts of an owner that pass the filter.
func (v view) tokensOf(owner solana.PublicKey, filter tokenFilter, cfg *accountConfig) ([]any, *Error) {
	if err := v.checkFilter(filter); err != nil {
		return nil, err
	}
	found := []any{}
	if v.empty {
		return found, nil
	}
	for _, t := range v.TokensOf(owner) {
		if filter.mint != nil && t.Token.Mint != *filter.mint || filter.program != nil && t.Account.Owner != *filter.program {
			continue
		}
		encoded, err := encodeAccount(t.Account, cfg.Encoding, cfg.DataSlice, v.Account)
		if err != nil {
			return nil, err
		}
		found = append(found, map[string]any{"pubkey": t.Key.String(), "account": encoded})
	}
	return found, nil
}

// checkFilter refuses a filter that no token account can pass.
func (v view) checkFilter(filter tokenFilter) *Error {
	if p := filter.program; p != nil && *p != solana.TokenProgramID && *p != solana.Token2022ProgramID {
		return invalidParams("Invalid param: unrecognized Token program id")
	}
	if filter.mint == nil || v.empty {
		return nil
	}
	if v.Account(*filter.mint) == nil {
		return invalidParams("Invalid param: could not find mint")
	}
	if _, ok := v.Decimals(*filter.mint); !ok {
		return invalidParams("Invalid param: not a Token mint")
	}
	return nil
}
