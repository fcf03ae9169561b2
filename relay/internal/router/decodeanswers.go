package router

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/swap"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// modeExactIn is the mode of a swap of exactly the input amount, the API's default.
	modeExactIn = "ExactIn"

	// maxAccounts is more than the number of accounts that a transaction can lock, because an
	// instruction may name an account twice.
	maxAccounts = 80
	// maxData is the size of a whole transaction, which one instruction's data never fills.
	maxData = shieldpool.MaxTransactionSizeV1
	// maxTables is more lookup tables than a route needs; each takes 34 bytes of the
	// transaction.
	maxTables = 8
)

// decodeQuote decodes a quote and checks it against the request.
func decodeQuote(body []byte, q swap.QuoteRequest) (*swap.Quote, error) {
	o, err := parseObject(body)
	if err != nil {
		return nil, badResponse("quote of %d bytes: %v", len(body), err)
	}
	r := reader{object: o}
	input, output, mode := r.address("inputMint"), r.address("outputMint"), r.text("swapMode")
	slippage := r.number("slippageBps")
	quote := &swap.Quote{
		InAmount: r.amount("inAmount"), OutAmount: r.amount("outAmount"), Threshold: r.amount("otherAmountThreshold"),
		Raw: json.RawMessage(body),
	}
	if r.has("contextSlot") {
		quote.ContextSlot = r.number("contextSlot")
	}
	switch {
	case r.fault != nil:
		return nil, r.fault
	case input != q.InputMint:
		return nil, &swap.RejectedRoute{What: swap.RejectedInputMint}
	case output != q.OutputMint:
		return nil, &swap.RejectedRoute{What: swap.RejectedOutputMint}
	case mode != modeExactIn:
		return nil, &swap.RejectedRoute{What: swap.RejectedMode}
	case quote.InAmount != q.Amount:
		return nil, &swap.RejectedRoute{What: swap.RejectedAmount}
	case slippage != uint64(q.SlippageBps): //nolint:gosec // Quote refuses a negative slippage
		return nil, &swap.RejectedRoute{What: swap.RejectedSlippage}
	case quote.Threshold > quote.OutAmount:
		return nil, &swap.RejectedRoute{What: swap.RejectedThreshold}
	}
	return quote, nil
}

// decodeInstructions decodes a swap's instructions from an answer of either version of the API. If
// an instruction is too large for any transaction, the error is a *swap.NoRoute, not a bad
// response, because a quote for fewer accounts may fit.
func decodeInstructions(body []byte, user solana.PublicKey) (*swap.Instructions, error) {
	o, err := parseObject(body)
	if err != nil {
		return nil, badResponse("instructions of %d bytes: %v", len(body), err)
	}
	r := reader{object: o}
	if !r.has("swapInstruction") {
		return nil, badResponse("swapInstruction: expected an instruction")
	}
	out, err := decodeInstruction(o["swapInstruction"], user)
	if err != nil {
		return nil, err
	}
	out.Others = len(r.list("setupInstructions", false)) + len(r.list("otherInstructions", false))
	for _, key := range []string{"tokenLedgerInstruction", "cleanupInstruction", "tipInstruction"} {
		if r.has(key) {
			out.Others++
		}
	}
	out.LookupTables = r.lookupTables()
	switch {
	case r.fault != nil:
		return nil, r.fault
	case len(out.LookupTables) > maxTables:
		return nil, &swap.NoRoute{Code: swap.CodeTooLarge}
	}
	return out, nil
}

// lookupTables returns the addresses of lookup tables. In v2 of the API they are the keys of an
// object whose values are the tables' contents; in v1 they are a list. The contents are ignored,
// because the relay reads tables from the chain.
func (r *reader) lookupTables() []solana.PublicKey {
	const version2, version1 = "addressesByLookupTableAddress", "addressLookupTableAddresses"
	var tables []solana.PublicKey
	add := func(table solana.PublicKey) {
		if !slices.Contains(tables, table) {
			tables = append(tables, table)
		}
	}
	if _, there := r.object[version2]; there {
		if !r.has(version2) {
			return nil
		}
		byAddress, err := parseObject(r.object[version2])
		if err != nil {
			r.fail(version2, "an object")
		}
		for _, text := range slices.Sorted(maps.Keys(byAddress)) {
			table, ok := parseAddress(text)
			if !ok {
				r.fail(version2, "keys of 32 bytes in base58")
			}
			add(table)
		}
		return tables
	}
	for _, raw := range r.list(version1, true) {
		entry := reader{object: object{version1: raw}}
		add(entry.address(version1))
		if r.fault == nil {
			r.fault = entry.fault
		}
	}
	return tables
}

// decodeInstruction decodes the instruction of the swap itself.
func decodeInstruction(text []byte, user solana.PublicKey) (*swap.Instructions, error) {
	o, err := parseObject(text)
	if err != nil {
		return nil, badResponse("swapInstruction: %v", err)
	}
	r := reader{object: o}
	out := &swap.Instructions{Program: r.address("programId"), Data: r.bytes("data")}
	accounts := r.list("accounts", true)
	switch {
	case r.fault != nil:
		return nil, r.fault
	case len(out.Data) == 0 || len(accounts) == 0:
		return nil, badResponse("swapInstruction: expected accounts and data")
	case len(out.Data) > maxData || len(accounts) > maxAccounts:
		return nil, &swap.NoRoute{Code: swap.CodeTooLarge}
	}
	for _, raw := range accounts {
		account, err := decodeAccount(raw)
		if err != nil {
			return nil, err
		}
		if account.IsSigner && account.PublicKey != user {
			return nil, &swap.RejectedRoute{What: swap.RejectedSigner}
		}
		out.Accounts = append(out.Accounts, account)
	}
	return out, nil
}

func decodeAccount(text []byte) (solana.AccountMeta, error) {
	o, err := parseObject(text)
	if err != nil {
		return solana.AccountMeta{}, badResponse("accounts: %v", err)
	}
	r := reader{object: o}
	account := solana.AccountMeta{PublicKey: r.address("pubkey"), IsSigner: r.boolean("isSigner"), IsWritable: r.boolean("isWritable")}
	return account, r.fault
}
