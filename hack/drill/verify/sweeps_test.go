package verify_test

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/drill/verify"
)

var successor = solana.PublicKey{7}

// movedLamports is the amount that a rotation's sweep moves to the successor.
const movedLamports = 300_000_000

// withMove adds a key rotation: one move from the payer to its successor, and a failed one.
func withMove(e *verify.Evidence) {
	e.Payers = append(e.Payers, verify.Payer{Key: successor, Closing: movedLamports})
	e.Payers[0].Closing -= movedLamports + 5000
	e.Attempts = append(e.Attempts, verify.Attempt{
		Signature: signature(50), Payer: payer, Purpose: verify.PurposeMove, Moves: map[solana.PublicKey]uint64{successor: movedLamports},
	}, verify.Attempt{
		Signature: signature(51), Payer: payer, Purpose: verify.PurposeMove, Moves: map[solana.PublicKey]uint64{successor: 5},
	})
	e.Transactions = append(e.Transactions, verify.Transaction{
		Signature: signature(50), Slot: 300, Payer: payer, Fee: 5000, SignatureFee: 5000,
		Changes: map[solana.PublicKey]int64{payer: -movedLamports - 5000, successor: movedLamports},
	}, verify.Transaction{
		Signature: signature(51), Slot: 301, Failed: true, Payer: payer, Fee: 5000, SignatureFee: 5000,
		Changes: map[solana.PublicKey]int64{payer: -5000},
	})
	e.Payers[0].Closing -= 5000
	e.Entries = append(e.Entries,
		verify.Entry{Signature: signature(50), Payer: payer, Kind: "sweep", Fee: 5000, Moved: movedLamports},
		verify.Entry{Signature: signature(50), Payer: successor, Kind: "sweep", Moved: -movedLamports},
		verify.Entry{Signature: signature(51), Payer: payer, Kind: "failed", Fee: 5000})
}

// moveFaults are the possible faults of a rotation's moves.
func moveFaults() map[string]injectedFault {
	const rents, lamports, ledger = "payers-pay-fees-and-rent", "lamports-accounted", "ledger-is-true"
	afterMove := func(change func(*verify.Evidence)) func(*verify.Evidence) {
		return func(e *verify.Evidence) { withMove(e); change(e) }
	}
	move := func(e *verify.Evidence) *verify.Transaction { return transaction(e, 50) }
	return map[string]injectedFault{
		"a move brought a lamport less than was recorded": {
			afterMove(func(e *verify.Evidence) { move(e).Changes[successor]-- }), rents, "brought payer " + successor.String(),
		},
		"a move took a lamport more than it brought": {
			afterMove(func(e *verify.Evidence) { move(e).Changes[payer]-- }), rents, "purpose move, took",
		},
		"a failed move brought lamports": {
			afterMove(func(e *verify.Evidence) { transaction(e, 51).Changes[successor] = 5 }), rents, "brought payer " + successor.String(),
		},
		"a move withdrew from the pool too": {
			afterMove(func(e *verify.Evidence) { move(e).Calls = e.Transactions[0].Calls }), rents, "purpose move, calls the pool",
		},
		"the successor lost a lamport": {
			afterMove(func(e *verify.Evidence) { e.Payers[len(e.Payers)-1].Closing-- }), lamports, "payer " + successor.String() + " holds",
		},
		"the ledger does not know what the successor got": {
			afterMove(func(e *verify.Evidence) {
				e.Entries = append(e.Entries[:len(e.Entries)-2], e.Entries[len(e.Entries)-1])
			}), ledger, "made to payer " + successor.String(),
		},
		"the ledger says that the successor got more": {
			afterMove(func(e *verify.Evidence) { e.Entries[len(e.Entries)-2].Moved-- }), ledger, "brought payer " + successor.String(),
		},
		"the ledger says that a move took less": {
			afterMove(func(e *verify.Evidence) { e.Entries[len(e.Entries)-3].Moved-- }), ledger, "the ledger says of " + signature(50).String(),
		},
		"a move is unknown to the database": {
			afterMove(func(e *verify.Evidence) { e.Attempts = e.Attempts[:len(e.Attempts)-2] }), "nothing-unknown-signed", signature(50).String(),
		},
	}
}
