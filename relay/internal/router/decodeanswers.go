package router

import (
	"encoding/json"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/swap"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// modeExactIn is the mode of a swap of exactly the input amount, the API's default.
	modeExactIn = "ExactIn"

	// maxAccounts is more than a transaction can lock: an instruction may name an account
	// twice.
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
	case slippage != uint64(q.SlippageBps): //nolint:gosec // Quote refuses a negative one
		return nil, &swap.RejectedRoute{What: swap.RejectedSlippage}
	case quote.Threshold > quote.OutAmount:
		return nil, &swap.RejectedRoute{What: swap.RejectedThreshold}
	}
	return quote, nil
}

// decodeInstructions decodes a swap's instructions. An instruction that fits no transaction
// gives a *swap.NoRoute, not a bad response: a quote for fewer accounts may fit.
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
	tables := r.list("addressLookupTableAddresses", true)
	out.Others = len(r.list("setupInstructions", false)) + len(r.list("otherInstructions", false))
	for _, key := range []string{"tokenLedgerInstruction", "cleanupInstruction"} {
		if r.has(key) {
			out.Others++
		}
	}
	if r.fault == nil && len(tables) > maxTables {
		return nil, &swap.NoRoute{Code: swap.CodeTooLarge}
	}
	for _, raw := range tables {
		entry := reader{object: object{"addressLookupTableAddresses": raw}}
		table := entry.address("addressLookupTableAddresses")
		if r.fault == nil {
			r.fault = entry.fault
		}
		if !slices.Contains(out.LookupTables, table) {
			out.LookupTables = append(out.LookupTables, table)
		}
	}
	if r.fault != nil {
		return nil, r.fault
	}
	return out, nil
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
