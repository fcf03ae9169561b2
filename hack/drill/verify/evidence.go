// Package verify compares the answers that clients got, the database and the chain with each other.
// It is pure: the drill gathers the evidence, and each check is a function of it.
package verify

import (
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Evidence is everything that the drill gathers once nothing changes any more.
type Evidence struct {
	// Fees are the pool's fees, which determine a recipient's share.
	Fees shieldpool.Fees
	// SwapTimeout is the number of slots from the creation of a swap's state until its first
	// possible refund. SwapGrace is the number of slots after that until it must be closed.
	SwapTimeout, SwapGrace uint64
	// Records are the clients' journal.
	Records []load.Record
	// Submissions, Executions and Attempts are the database's rows.
	Submissions []Submission
	Executions  []Execution
	Attempts    []Attempt
	// Transactions are the transactions of the finalized chain that call the pool or that
	// a fee payer paid for, in the chain's order.
	Transactions []Transaction
	// Undone are the transactions that forks undid, whether or not they landed again.
	Undone map[solana.Signature]bool
	// SwapAnswers are the answers of /status for each swap after the load.
	SwapAnswers map[uuid.UUID]SwapStatus
	// LeftAccounts are accounts that swaps left behind. Searched is the number of accounts that
	// were checked.
	LeftAccounts []LeftAccount
	Searched     int
	// Vault is the market's account of wrapped SOL.
	Vault Vault
	// RootHistories are the root histories that the chain's own node returned while clients were at
	// work, by time.
	RootHistories []RootHistory
	// Payers are the relays' fee payers.
	Payers []Payer
	// Entries are the lines of the relays' ledger. LedgerFault is the discrepancy that the command relay ledger
	// reports; empty when everything is accounted for.
	Entries     []Entry
	LedgerFault string
	// Heights are the heights of the finalized chain's blocks. Finality has the finalized
	// slots and heights while clients were at work, by time.
	Heights  Heights
	Finality []Finality
	// Pins are the encodings of a proof's A that the database records as accepted by
	// the program, and ProofAEncoding is the encoding that it does accept.
	Pins           []string
	ProofAEncoding string
	// HostileAnswers counts the relays' answers to hostile clients.
	HostileAnswers map[HostileAnswer]int
	// Leaks are the places where request content was found. Scanned is the number of
	// bytes of logs and metrics that were searched for it.
	Leaks   []Leak
	Scanned int64
}

// HostileAnswer is a relay's answer to a request of a hostile client.
type HostileAnswer struct {
	Attack string
	Status int
	Code   string
}

// Submission is a row of the database.
type Submission struct {
	ID    uuid.UUID
	State string
	// Code is empty unless State is failed.
	Code      string
	Finalized bool
	// Signature is zero until the submission is completed. For a swap it is the first
	// leg's signature.
	Signature solana.Signature
	Inputs    shieldpool.PublicInputs
	// Recipient is zero for transfers, and the wallet of a swap.
	Recipient solana.PublicKey
	// Swap is nil unless the submission is a swap.
	Swap *shieldpool.SwapTerms
	// CreatedAt and CompletedAt are by the machine's clock; CompletedAt is zero
	// while there is no outcome.
	CreatedAt, CompletedAt time.Time
}

// Execution is the row of a swap's second leg.
type Execution struct {
	ID uuid.UUID
	// Swap is the id of the first leg.
	Swap  uuid.UUID
	State string
	Code  string
	// Phase is executed or refunded once the swap has ended. Ended reports that no fork can
	// change it.
	Phase            string
	Ended, Finalized bool
	// Signature is the signature of the transaction that ended the swap; zero before.
	Signature solana.Signature
	// Timeout is the first slot in which the swap can be refunded.
	Timeout uint64
	// CreatedAt and CompletedAt have the same meaning as in Submission.
	CreatedAt, CompletedAt time.Time
}

// SwapStatus is the answer of GET /status for a swap.
type SwapStatus struct {
	// Fault says why there is no answer; empty when there is one.
	Fault         string
	Status, Phase string
	Code          string
	Finalized     bool
	// Signature is the first leg's signature in base58; Execution or Refund is the second leg's.
	Signature, Execution, Refund string
}

// LeftAccount is an account on the finalized chain that should not be there, or should be empty.
type LeftAccount struct {
	Key solana.PublicKey
	// What says what was left, swap state or wrapped SOL. Amount is in lamports.
	What   string
	Amount uint64
}

// Vault is the market's account of wrapped SOL, with its lamports before the first relay
// started and after the drill.
type Vault struct {
	Opening, Closing uint64
}

// Attempt is a signed transaction that the database knows.
type Attempt struct {
	Signature solana.Signature
	// Submission is the row that the attempt belongs to: for a swap's second leg, the execution.
	Submission uuid.UUID
	Payer      solana.PublicKey
	Blockhash  solana.Hash
	// Fee is in lamports.
	Fee       uint64
	CreatedAt time.Time
	// Purpose is transact, execute, refund, or move: a move is signed by relay
	// sweep and has no submission.
	Purpose string
	// Moves are the lamports that a move brings to each other payer; nil for other purposes.
	Moves map[solana.PublicKey]uint64
}

// Transaction is a transaction that landed on the chain, successfully or not.
type Transaction struct {
	Signature solana.Signature
	Slot      uint64
	Failed    bool
	// Payer is the fee payer: the first signer.
	Payer solana.PublicKey
	// Rent is the rate of rent in the transaction's slot.
	Rent shieldpool.Rent
	// Fee is in lamports. SignatureFee is its fixed part, which depends on the number of
	// signatures.
	Fee, SignatureFee uint64
	// Calls are its calls of the pool's Transact and TransactSwap. Ends are its calls of
	// ExecuteSwap and CloseSwapState.
	Calls []PoolCall
	Ends  []SwapEnd
	// Changes are its changes of balances, in lamports, without the accounts whose
	// balance stayed the same.
	Changes map[solana.PublicKey]int64
	// Tokens are its changes of token accounts, in their mint's smallest unit.
	Tokens map[solana.PublicKey]int64
}

// PoolCall is one Transact or TransactSwap.
type PoolCall struct {
	Inputs shieldpool.PublicInputs
	// Recipient is the account in the recipient's position: the payer for a
	// transfer, the state for a swap.
	Recipient solana.PublicKey
	// Swap is nil for a Transact.
	Swap *shieldpool.SwapTerms
}

// SwapEnd is one ExecuteSwap or CloseSwapState.
type SwapEnd struct {
	How shieldpool.SwapEnding
	// State is the swap's state. WSOL is its account of wrapped SOL, which a refund names
	// only if the lamports are wrapped. Output is its account of the output mint, which
	// only an execution names.
	State, WSOL, Output solana.PublicKey
	// Recipient is the token account that an execution pays, or the wallet that a refund pays.
	Recipient solana.PublicKey
}

// RootHistory is the root history of the tree's account at a time.
type RootHistory struct {
	At   time.Time
	Slot uint64
	// Roots are the roots of the history, the newest included.
	Roots map[[32]byte]struct{}
}

// Payer is a fee payer with its balances in lamports.
type Payer struct {
	Key solana.PublicKey
	// Opening is the balance before the first relay started. Closing is the finalized
	// balance at the end. Funded is the income in between. LedgerOpening is the balance
	// before the ledger's first transaction, according to the relays' ledger.
	Opening, Funded, Closing, LedgerOpening uint64
}

// Entry is a line of the relays' ledger: what a payer's landed transaction cost, in lamports.
type Entry struct {
	Signature solana.Signature
	Payer     solana.PublicKey
	Kind      string
	// Fee is the fixed part of the network's fee, and Priority is the rest. Rent is the rent of the
	// pool's accounts. Other is what the relay could not explain. Received is the income. Moved is
	// the amount that a move took to other payers; it is negative for a payer that the move paid.
	Fee, Priority, Rent, Other, Received, Moved int64
}

// Leak is a place where a part of a request was found.
type Leak struct {
	// Source is the file or metric page, and Line counts from 1.
	Source string
	Line   int
	// What is the name of the field and its encoding, never the value.
	What string
}
