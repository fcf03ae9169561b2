package swap

import (
	"encoding/json"
	"time"

	"github.com/gagliardetto/solana-go"
)

// QuoteRequest asks for the price of a swap of exactly Amount.
type QuoteRequest struct {
	InputMint, OutputMint solana.PublicKey
	// User owns the token accounts that the swap pays from and into, and signs the swap's
	// instruction.
	User solana.PublicKey
	// Amount is what goes in, in the input mint's smallest unit; not 0.
	Amount uint64
	// SlippageBps is how much worse the price may get between the quote and its execution, in
	// hundredths of a percent from 0 to 10000.
	SlippageBps int
	// MaxAccounts limits the accounts that the swap's instruction names, and with them the
	// size of the transaction; 0 is no limit. The limit is not exact: the instruction can name
	// a few more.
	MaxAccounts int
	// DirectOnly asks for a route through a single market, which makes the smallest
	// transaction. The API's v2 has no such parameter: there MaxAccounts alone limits the size.
	DirectOnly bool
	// First is which of several routers is asked first: 0 for the preferred one, 1 for the
	// next, and so on, beginning again after the last one.
	First int
	// Only is the name of the one router to ask; empty for all.
	Only string
}

// Quote is a router's price for the swap of a QuoteRequest.
type Quote struct {
	// Router is the name of the router that gave the quote. Only this router has the
	// instructions for it.
	Router string
	// InAmount is the request's Amount. OutAmount is the expected output, and Threshold
	// the output below which the router's program fails; both are in the output mint's
	// smallest unit, and Threshold is never above OutAmount.
	InAmount, OutAmount, Threshold uint64
	// ContextSlot is the newest slot that the router has read; 0 when the answer does not say.
	ContextSlot uint64
	// Received is when the answer arrived, by this process's clock.
	Received time.Time
	// Raw is the whole answer. The request for the quote's instructions contains it unchanged.
	Raw json.RawMessage
	// Instructions carry the quote out for the request's User. The field is nil if the router
	// gives the instructions only in the answer to another call.
	Instructions *Instructions
}

// Instructions are the router's answer for how to carry out a Quote. They are not yet safe
// to sign: the planner first checks which program and accounts they name.
type Instructions struct {
	// Program is the program that the instruction calls.
	Program solana.PublicKey
	// Accounts are the instruction's accounts, in order. Only the user for whom the
	// instructions were requested may be a signer.
	Accounts []solana.AccountMeta
	Data     []byte
	// LookupTables are the address lookup tables that make the transaction small enough;
	// the transaction may leave them out.
	LookupTables []solana.PublicKey
	// Others is the number of instructions that the router wants in the transaction in
	// addition to the swap itself, such as those that create token accounts for the route.
	// The relay adds none of them; a swap that needs one fails its simulation.
	// Compute-budget instructions are not counted.
	Others int
}
