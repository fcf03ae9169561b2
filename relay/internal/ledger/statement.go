// Package ledger accounts for every lamport that left or reached a fee payer, from the
// chain's finalized history.
package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
)

// Sum is the sum of one payer's transactions of one kind on one day (UTC). If Day is zero, it is
// the sum of all days.
type Sum struct {
	Day          time.Time
	Payer        solana.PublicKey
	Kind         Kind
	Transactions uint64
	Amounts
}

// Snapshot is the ledger at one moment.
type Snapshot struct {
	// Days are the sums of the requested days. Totals are the sums of all days.
	Days, Totals []Sum
	Cursors      []Cursor
}

// Statement is the output of the command `relay ledger`. All amounts are lamports.
type Statement struct {
	// Days are in order, each with all payers and kinds together.
	Days []DayLine `json:"days"`
	// Kinds are the sums of the same days by payer and kind.
	Kinds  []KindLine  `json:"kinds"`
	Payers []PayerLine `json:"payers"`
}

// DayLine is one day's sums.
type DayLine struct {
	Day          string `json:"day"` // YYYY-MM-DD, UTC
	Transactions uint64 `json:"transactions"`
	Amounts
	Spent    int64  `json:"spent"`
	SpentSOL string `json:"spent_sol"`
}

// KindLine is one day's sums of one payer and kind.
type KindLine struct {
	Day          string           `json:"day"`
	Payer        solana.PublicKey `json:"payer"`
	Kind         Kind             `json:"kind"`
	Transactions uint64           `json:"transactions"`
	Amounts
}

// PayerLine explains one payer's balance since the ledger's start.
type PayerLine struct {
	Payer   solana.PublicKey `json:"payer"`
	Opening uint64           `json:"opening"`
	// Spent is everything that left the account, except what sweeps moved. Moved is what sweeps
	// moved from the payer, less what sweeps moved to the payer.
	Spent    int64  `json:"spent"`
	Moved    int64  `json:"moved"`
	Received uint64 `json:"received"`
	// Gaps counts places where history is missing; Missing is their effect on the balance.
	Gaps    uint64 `json:"gaps"`
	Missing int64  `json:"missing"`
	// Closing is the balance after the last transaction that was read.
	Closing uint64 `json:"closing"`
	// Unexplained is Closing less the balance that the other figures add up to. It should be 0.
	Unexplained int64 `json:"unexplained"`
	// Chain is the balance on the chain. Difference is Chain less Closing, the effect of
	// transactions that are not final yet. Both are nil when the chain was not read.
	Chain      *uint64 `json:"chain,omitempty"`
	Difference *int64  `json:"difference,omitempty"`
	// Unknown counts transactions that the payer's key signed and that the database does not
	// contain. Other is the cost of the relay's own transactions beyond fee and rent.
	Unknown uint64 `json:"unknown"`
	Other   int64  `json:"other"`
	// Slot is the last slot that was read. CheckedAt is the time up to which the whole finalized
	// history has been read.
	Slot      uint64    `json:"slot"`
	CheckedAt time.Time `json:"checked_at,omitzero"`
}

// Statement makes the statement. chain has the present balances on the chain, in lamports; it is
// nil when they were not read.
func (l *Snapshot) Statement(chain map[solana.PublicKey]uint64) Statement {
	s := Statement{Days: []DayLine{}, Kinds: []KindLine{}, Payers: l.payers()}
	sorted := slices.SortedFunc(slices.Values(l.Days), func(a, b Sum) int {
		return cmp.Or(a.Day.Compare(b.Day), slices.Compare(a.Payer[:], b.Payer[:]), cmp.Compare(slices.Index(Kinds(), a.Kind), slices.Index(Kinds(), b.Kind)))
	})
	for _, sum := range sorted {
		name := sum.Day.Format(time.DateOnly)
		if n := len(s.Days); n == 0 || s.Days[n-1].Day != name {
			s.Days = append(s.Days, DayLine{Day: name})
		}
		line := &s.Days[len(s.Days)-1]
		line.Transactions += sum.Transactions
		line.Amounts = line.Amounts.plus(sum.Amounts)
		s.Kinds = append(s.Kinds, KindLine{name, sum.Payer, sum.Kind, sum.Transactions, sum.Amounts})
	}
	for i := range s.Days {
		s.Days[i].Spent = s.Days[i].Amounts.Spent()
		s.Days[i].SpentSOL = sol(s.Days[i].Spent)
	}
	for i := range s.Payers {
		s.Payers[i].compareWithChain(chain)
	}
	return s
}

// payers returns a line for each cursor, in the same order.
func (l *Snapshot) payers() []PayerLine {
	lines := make([]PayerLine, len(l.Cursors))
	for i := range l.Cursors {
		c := &l.Cursors[i]
		line := PayerLine{
			Payer: c.Payer, Opening: c.Opening, Gaps: c.Gaps, Missing: c.Missing, Closing: c.BalanceAfter, Slot: c.Slot, CheckedAt: c.CheckedAt,
		}
		for _, s := range l.Totals {
			if s.Payer != c.Payer {
				continue
			}
			line.Spent += s.Spent()
			line.Moved += s.Moved
			line.Received += s.Received
			if s.Kind == KindUnknown {
				line.Unknown += s.Transactions
			} else {
				line.Other += s.Other
			}
		}
		line.Unexplained = int64(c.BalanceAfter) - (int64(c.Opening) - line.Spent - line.Moved + int64(line.Received) + c.Missing) //nolint:gosec // any sum of lamports fits 63 bits
		lines[i] = line
	}
	return lines
}
