package account_test

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/drill/account"
)

var successor = solana.PublicKey{7}

// movedLamports is the amount that a rotation's sweep moves to the successor.
const movedLamports = 300_000_000

// withMove adds a key's rotation: one move from the payer to a new one.
func withMove(e *account.Evidence) {
	e.Payers = append(e.Payers, account.Payer{Key: successor, Closing: movedLamports})
	e.Payers[0].Closing -= movedLamports + 5000
	e.Attempts = append(e.Attempts, account.Attempt{
		Signature: signature(50), Payer: payer, Purpose: account.PurposeMove, Moves: map[solana.PublicKey]uint64{successor: movedLamports},
	}, account.Attempt{
		Signature: signature(51), Payer: payer, Purpose: account.PurposeMove, Moves: map[solana.PublicKey]uint64{successor: 5},
	})
	e.Transactions = append(e.Transactions, account.Transaction{
		Signature: signature(50), Slot: 300, Payer: payer, Fee: 5000, SignatureFee: 5000,
		Changes: map[solana.PublicKey]int64{payer: -movedLamports - 5000, successor: movedLamports},
	}, account.Transaction{
		Signature: signature(51), Slot: 301, Failed: true, Payer: payer, Fee: 5000, SignatureFee: 5000,
		Changes: map[solana.PublicKey]int64{payer: -5000},
	})
	e.Payers[0].Closing -= 5000
	e.Entries = append(e.Entries,
		account.Entry{Signature: signature(50), Payer: payer, Kind: "sweep", Fee: 5000, Moved: movedLamports},
		account.Entry{Signature: signature(50), Payer: successor, Kind: "sweep", Moved: -movedLamports},
		account.Entry{Signature: signature(51), Payer: payer, Kind: "failed", Fee: 5000})
}

// moveFaults are the possible faults of a rotation's moves.
func moveFaults() map[string]doctored {
	const rents, lamports, ledger = "payers-pay-fees-and-rent", "lamports-accounted", "ledger-is-true"
	with := func(change func(*account.Evidence)) func(*account.Evidence) {
		return func(e *account.Evidence) { withMove(e); change(e) }
	}
	move := func(e *account.Evidence) *account.Transaction { return transaction(e, 50) }
	return map[string]doctored{
		"a move brought a lamport less than was written down": {
			with(func(e *account.Evidence) { move(e).Changes[successor]-- }), rents, "brought payer " + successor.String(),
		},
		"a move took a lamport more than it brought": {
			with(func(e *account.Evidence) { move(e).Changes[payer]-- }), rents, "to move, took",
		},
		"a failed move brought lamports": {
			with(func(e *account.Evidence) { transaction(e, 51).Changes[successor] = 5 }), rents, "brought payer " + successor.String(),
		},
		"a move withdrew from the pool too": {
			with(func(e *account.Evidence) { move(e).Calls = e.Transactions[0].Calls }), rents, "to move, calls the pool",
		},
		"the successor lost a lamport": {
			with(func(e *account.Evidence) { e.Payers[len(e.Payers)-1].Closing-- }), lamports, "payer " + successor.String() + " holds",
		},
		"the ledger does not know what the successor got": {
			with(func(e *account.Evidence) {
				e.Entries = append(e.Entries[:len(e.Entries)-2], e.Entries[len(e.Entries)-1])
			}), ledger, "did to payer " + successor.String(),
		},
		"the ledger says that the successor got more": {
			with(func(e *account.Evidence) { e.Entries[len(e.Entries)-2].Moved-- }), ledger, "brought payer " + successor.String(),
		},
		"the ledger says that a move took less": {
			with(func(e *account.Evidence) { e.Entries[len(e.Entries)-3].Moved-- }), ledger, "the ledger says of " + signature(50).String(),
		},
		"a move was signed that the database does not know": {
			with(func(e *account.Evidence) { e.Attempts = e.Attempts[:len(e.Attempts)-2] }), "nothing-unknown-signed", signature(50).String(),
		},
	}
}
