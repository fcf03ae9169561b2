// Package account holds what clients were told, what the database says and what
// the chain says against each other. It is pure: the drill gathers the
// evidence, and each check is a function over it.
package account

import (
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Evidence is everything that was gathered once all is quiet.
type Evidence struct {
	// Fees are the pool's, from which a recipient's share follows.
	Fees shieldpool.Fees
	// SwapTimeout is how many slots after its making a swap's state can be
	// refunded, and SwapGrace how many later it has to be gone.
	SwapTimeout, SwapGrace uint64
	// Records are the clients' journal.
	Records []load.Record
	// Submissions and Attempts are the database's rows.
	Submissions []Submission
	Executions  []Execution
	Attempts    []Attempt
	// Transactions are those of the finalized chain that call the pool or are
	// paid by a fee payer, in the chain's order.
	Transactions []Transaction
	// Undone are the transactions that forks undid, whether or not they landed again.
	Undone map[solana.Signature]bool
	// Told is what /status said of each swap when all was quiet.
	Told map[uuid.UUID]SwapStatus
	// Left are accounts that a swap left behind, of Searched that could have been.
	Left     []Left
	Searched int
	// Vault is the market's account of wrapped SOL.
	Vault Vault
	// Rings are the root rings that the chain's own node showed while clients
	// were at work, by time.
	Rings []Ring
	// Payers are the relays' fee payers.
	Payers []Payer
	// Entries is the relays' own ledger, and LedgerFault what the relay's own
	// command says against it; empty when it says that all is accounted for.
	Entries     []Entry
	LedgerFault string
	// Heights are those of the finalized chain's blocks, and Finality where it stood
	// while clients were at work, by time.
	Heights  Heights
	Finality []Finality
	// Pins are the signs of a proof's A that the database says the program takes,
	// and Sign is the one that it does take.
	Pins []string
	Sign string
	// Hostile counts what relays answered to hostile clients.
	Hostile map[HostileAnswer]int
	// Leaks are the places where request content was found, and Scanned the bytes
	// of logs and metrics that were searched for it.
	Leaks   []Leak
	Scanned int64
}

// HostileAnswer is how a relay answered what a hostile client sent.
type HostileAnswer struct {
	Attack string
	Status int
	Code   string
}

// Submission is a row of the database.
type Submission struct {
	ID    uuid.UUID
	State string
	// Kind is transfer, withdrawal or swap.
	Kind string
	// Code is empty unless State is failed.
	Code                  string
	Finalized, RolledBack bool
	// Signature is zero until the submission is completed; of a swap it is the
	// first leg's.
	Signature solana.Signature
	Inputs    shieldpool.PublicInputs
	// Recipient is zero for transfers, and the wallet of a swap.
	Recipient solana.PublicKey
	// Swap is nil for what is none.
	Swap *shieldpool.SwapTerms
	// CreatedAt and CompletedAt are by the machine's clock; the latter is zero
	// while there is no outcome.
	CreatedAt, CompletedAt time.Time
}

// Execution is the row of a swap's second leg.
type Execution struct {
	ID uuid.UUID
	// Swap is the first leg's.
	Swap  uuid.UUID
	State string
	Code  string
	// Phase is executed or refunded once there is an end, and Ended says that no
	// fork can change it.
	Phase            string
	Ended, Finalized bool
	// Signature is of the transaction that ended the swap; zero before.
	Signature solana.Signature
	// Timeout is the slot from which on the swap can be refunded.
	Timeout uint64
	// CreatedAt and CompletedAt are as a Submission's.
	CreatedAt, CompletedAt time.Time
}

// SwapStatus is what GET /status says of a swap.
type SwapStatus struct {
	// Fault is why there is no answer; empty when there is one.
	Fault         string
	Status, Phase string
	Code          string
	Finalized     bool
	// Signature is the first leg's, Execution and Refund are the second's, in base58.
	Signature, Execution, Refund string
}

// Left is an account on the finalized chain that should not be there, or should
// be empty.
type Left struct {
	Key solana.PublicKey
	// What is a swap state, or wrapped SOL; Amount is in lamports.
	What   string
	Amount uint64
}

// Vault is an account of wrapped SOL with its lamports before the first relay
// started and when all is quiet.
type Vault struct {
	Opening, Closing uint64
}

// Attempt is a signed transaction that the database knows.
type Attempt struct {
	Signature solana.Signature
	// Submission is the row whose attempt it is: of a swap's second leg, the execution.
	Submission uuid.UUID
	Payer      solana.PublicKey
	Blockhash  solana.Hash
	CreatedAt  time.Time
	// Purpose is transact, execute, refund, or move, which is relay
	// sweep's and of no submission.
	Purpose string
	// Moves are what a move takes to other payers, in lamports; nil for all else.
	Moves map[solana.PublicKey]uint64
}

// Transaction is one that landed on the chain, successfully or not.
type Transaction struct {
	Signature solana.Signature
	Slot      uint64
	Failed    bool
	// Payer is the fee payer: whoever signed first.
	Payer solana.PublicKey
	// Fee is in lamports, SignatureFee the part of it that is the network's fixed one.
	Fee, SignatureFee uint64
	// Calls are its calls of the pool's Transact and TransactSwap, and Ends those
	// of ExecuteSwap and CloseSwapState.
	Calls []PoolCall
	Ends  []SwapEnd
	// Changes are what it did to balances, in lamports; accounts that it left as
	// they were are not in it.
	Changes map[solana.PublicKey]int64
	// Tokens are what it did to token accounts, in their mint's smallest unit.
	Tokens map[solana.PublicKey]int64
}

// PoolCall is one Transact or TransactSwap.
type PoolCall struct {
	Inputs shieldpool.PublicInputs
	// Recipient is what stands in the recipient's place: the payer for a
	// transfer, the state for a swap.
	Recipient solana.PublicKey
	// Swap is nil for a Transact.
	Swap *shieldpool.SwapTerms
}

// SwapEnd is one ExecuteSwap or CloseSwapState.
type SwapEnd struct {
	How shieldpool.Settlement
	// State is the swap's, WSOL its account of wrapped SOL, which a refund names
	// when the lamports are wrapped, and Output its account of the output mint,
	// which only an execution names.
	State, WSOL, Output solana.PublicKey
	// Recipient is the token account that an execution pays, or the wallet that a
	// refund does.
	Recipient solana.PublicKey
}

// Ring is what the tree's account held at a time.
type Ring struct {
	At   time.Time
	Slot uint64
	// Roots are the ring's, the newest included.
	Roots map[[32]byte]struct{}
}

// Payer is a fee payer with its balances in lamports.
type Payer struct {
	Key solana.PublicKey
	// Opening is before the first relay started, Closing at finalized after all
	// is quiet, and Funded what came in between. LedgerOpening is what the
	// relays' ledger says that it held before the ledger's first transaction.
	Opening, Funded, Closing, LedgerOpening uint64
}

// Entry is a line of the relays' ledger: what a payer's landed transaction cost,
// in lamports.
type Entry struct {
	Signature solana.Signature
	Payer     solana.PublicKey
	Kind      string
	// Fee is the fixed part of the network's fee and Priority the rest; Rent is
	// what the pool's accounts took. Other is what the relay could not explain,
	// and Received what came in. Moved is what a move took to other payers, below
	// zero what it brought.
	Fee, Priority, Rent, Other, Received, Moved int64
}

// Leak is a place where a part of a request was found.
type Leak struct {
	// Source is the file or metric page, and Line counts from 1.
	Source string
	Line   int
	// What names the field and its encoding, never its value.
	What string
}
