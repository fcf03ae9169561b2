// Package trade is the client's side of a swap: its terms and the request that
// carries them, the price that a wallet asks a router for before it chooses its
// minimum, the relay's two routes until the swap is executed or refunded, and the final
// balance of the recipient's token account.
//
// For tests and demonstrations, as package wallet is.
package trade

import (
	"fmt"
	"math/bits"
	"strconv"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// maxBPS is 100 %, in basis points.
const maxBPS = 10_000

// Terms are those of a swap into the associated token account of wallet for
// mint, of the SPL Token program, that pays at least minimum, in the mint's
// smallest unit.
func Terms(wallet, mint solana.PublicKey, minimum uint64) (shieldpool.SwapTerms, error) {
	account, err := shieldpool.AssociatedTokenAccount(wallet, mint)
	if err != nil {
		return shieldpool.SwapTerms{}, fmt.Errorf("terms of a swap: %w", err)
	}
	return shieldpool.SwapTerms{OutputMint: mint, RecipientATA: account, MinOutput: minimum}, nil
}

// Minimum is bps basis points of a quote, up to 10 000, rounded down: the output that a
// wallet still accepts when the price moves before its swap is executed.
func Minimum(quoted, bps uint64) uint64 {
	high, low := bits.Mul64(quoted, min(bps, maxBPS))
	minimum, _ := bits.Div64(high, low, maxBPS)
	return minimum
}

// Request is the body of POST /transact_swap. The proof has 256 bytes and the inputs
// 264; notes are opaque, and nil for none. The minimum is a decimal string, which no
// JSON library rounds.
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
