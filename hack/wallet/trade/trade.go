// Package trade is the client side of a swap. It asks a router for the price, makes the
// swap's terms and request, posts the swap to a relay, polls its status, and reads the
// balance of the recipient's token account.
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

// Terms returns the terms of a swap into wallet's associated token account for mint, a mint
// of SPL Token. minimum is the smallest accepted output, in the mint's smallest unit.
func Terms(wallet, mint solana.PublicKey, minimum uint64) (shieldpool.SwapTerms, error) {
	account, err := shieldpool.AssociatedTokenAccount(wallet, mint)
	if err != nil {
		return shieldpool.SwapTerms{}, fmt.Errorf("terms of a swap: %w", err)
	}
	return shieldpool.SwapTerms{OutputMint: mint, RecipientATA: account, MinOutput: minimum}, nil
}

// Minimum returns bps basis points of a quote, rounded down: the smallest output that a
// wallet accepts if the price moves before its swap is executed. bps above 10 000 count as
// 10 000.
func Minimum(quoted, bps uint64) uint64 {
	high, low := bits.Mul64(quoted, min(bps, maxBPS))
	minimum, _ := bits.Div64(high, low, maxBPS)
	return minimum
}

// Request returns the body of POST /transact_swap. proof has 256 bytes and inputs 264 bytes.
// notes are encrypted notes, or nil. The minimum is a decimal string in the body, because
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
