package swap

import (
	"encoding/json"
	"time"

	"github.com/gagliardetto/solana-go"
)

// QuoteRequest asks for the price of a swap of exactly Amount.
type QuoteRequest struct {
	InputMint, OutputMint solana.PublicKey
	// Amount is what goes in, in the input mint's smallest unit; not 0.
	Amount uint64
	// SlippageBps is by how many hundredths of a percent, 0 to 10000, the price may
	// worsen between the quote and its execution.
	SlippageBps int
	// MaxAccounts is about how many accounts the swap's instruction may name, to
	// bound the size of its transaction; 0 leaves it to the router. It is an aim:
	// the instruction can name a few more.
	MaxAccounts int
	// DirectOnly wants a single market, which makes the smallest transaction.
	DirectOnly bool
}

// Quote is a router's price, for a QuoteRequest.
type Quote struct {
	// InAmount is the request's Amount. OutAmount is the expected output, and Threshold
	// the output below which the router's program fails; both are in the output mint's
	// smallest unit, and Threshold is never above OutAmount.
	InAmount, OutAmount, Threshold uint64
	// ContextSlot is the newest slot that the router had seen; 0 when it does not say.
	ContextSlot uint64
	// Received is when the answer came, by this process's clock.
	Received time.Time
	// Raw is the whole answer, to be sent back unchanged when its instructions
	// are asked for.
	Raw json.RawMessage
}

// Instructions carry a Quote out. They come from the router unchecked: the signer of a
// transaction with them checks program and accounts first.
type Instructions struct {
	// Program is the one that the router wants called.
	Program solana.PublicKey
	// Accounts are the instruction's, in order. The only signer among them is the
	// user that was asked for, if any.
	Accounts []solana.AccountMeta
	Data     []byte
	// LookupTables are the address lookup tables that make the transaction small
	// enough; the transaction is free to leave them out.
	LookupTables []solana.PublicKey
	// Others counts the instructions that the router wants in the transaction in addition
	// to the swap itself, such as for token accounts that the route needs and the user
	// lacks. The relay adds none of them; a swap that needs one fails its simulation.
	// Compute-budget instructions are not counted.
	Others int
}
