// Package trade is the client's side of a swap. It makes the swap's terms and the request
// with them, asks a router for the price from which a wallet chooses its minimum, posts the
// swap to a relay and polls its status, and reads the balance of the recipient's token
// account.
//
// Like package wallet it is for tests and demonstrations.
package trade

import (
	"fmt"
	"math/bits"
	"strconv"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const maxBPS = 10_000

// Terms are the terms of a swap into wallet's associated token account for mint, which is
// a mint of SPL Token. minimum is the smallest accepted output, in the mint's smallest
// unit.
func Terms(wallet, mint solana.PublicKey, minimum uint64) (shieldpool.SwapTerms, error) {
	account, err := shieldpool.AssociatedTokenAccount(wallet, mint)
	if err != nil {
		return shieldpool.SwapTerms{}, fmt.Errorf("terms of a swap: %w", err)
	}
	return shieldpool.SwapTerms{OutputMint: mint, RecipientATA: account, MinOutput: minimum}, nil
}

// Minimum is bps basis points of a quote, rounded down: the smallest output that a wallet
// accepts when the price moves before its swap is executed. bps above 10 000 count as
// 10 000.
func Minimum(quoted, bps uint64) uint64 {
	high, low := bits.Mul64(quoted, min(bps, maxBPS))
	minimum, _ := bits.Div64(high, low, maxBPS)
	return minimum
}

// Request is the body of POST /transact_swap. proof has 256 bytes and inputs 264 bytes.
// notes are opaque encrypted notes, nil for none. The minimum is a decimal string, because
// some JSON libraries round large numbers.
func Request(proof, inputs []byte, wallet solana.PublicKey, terms shieldpool.SwapTerms, notes [][]byte) (openapi.TransactSwapRequest, error) {
	recipient := wallet.String()
	request := openapi.TransactSwapRequest{
		ProofBytes: proof, PublicInputs: inputs, Recipient: &recipient,
		OutputMint: terms.OutputMint.String(), RecipientAta: terms.RecipientATA.String(),
	}
	if len(notes) > 0 {
		request.EncryptedNotes = &notes
	}
	if err := request.MinOutputAmount.FromTransactSwapRequestMinOutputAmount1(strconv.FormatUint(terms.MinOutput, 10)); err != nil {
		return request, fmt.Errorf("encode the minimum of a swap: %w", err)
	}
	return request, nil
}
