// Package ledger accounts for every lamport that left or reached a fee payer, from the
// chain's finalized history.
package ledger

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/gagliardetto/solana-go"
)

// Sum is the sum of one payer's transactions of one kind: of a day (UTC), or of all
// days when Day is zero.
type Sum struct {
	Day          time.Time
	Payer        solana.PublicKey
	Kind         Kind
	Transactions uint64
	Amounts
}

// Snapshot is the ledger at one moment.
type Snapshot struct {
	// Days are the sums of the requested days, Totals the sums of all days.
	Days, Totals []Sum
	Cursors      []Cursor
}

// Statement is the output of relay ledger. All amounts are lamports.
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
	// Spent is everything that left, without Moved, the net amount that sweeps moved to
	// other keys of the operator: negative when sweeps brought more.
	Spent    int64  `json:"spent"`
	Moved    int64  `json:"moved"`
	Received uint64 `json:"received"`
	// Gaps counts places where history is missing; Missing is their effect on the balance.
	Gaps    uint64 `json:"gaps"`
	Missing int64  `json:"missing"`
	// Closing is the balance after the last transaction that was read.
	Closing uint64 `json:"closing"`
	// Unexplained is Closing less the balance that the other figures add up to: 0.
	Unexplained int64 `json:"unexplained"`
	// Chain is the balance on the chain, and Difference its excess over Closing, from
	// transactions that are not final yet. Nil when the chain was not read.
	Chain      *uint64 `json:"chain,omitempty"`
	Difference *int64  `json:"difference,omitempty"`
	// Unknown counts transactions that the database does not know. Other is the cost of
	// the relay's own transactions beyond fee and rent.
	Unknown uint64 `json:"unknown"`
	Other   int64  `json:"other"`
	// Slot is the last slot that was read; CheckedAt is when the whole history was last
	// read.
	Slot      uint64    `json:"slot"`
	CheckedAt time.Time `json:"checked_at,omitzero"`
}

// agrees reports whether every lamport of the payer is accounted for.
func (p *PayerLine) agrees() bool {
	return p.Gaps == 0 && p.Unexplained == 0 && p.Unknown == 0 && p.Other == 0 && (p.Difference == nil || *p.Difference == 0)
}

// Agrees reports whether every lamport is accounted for: no gap, no unknown transaction,
// nothing unexplained, and no difference to a balance that was read from the chain.
func (s *Statement) Agrees() bool {
	return !slices.ContainsFunc(s.Payers, func(p PayerLine) bool { return !p.agrees() })
}

// Statement makes the statement. chain are the present balances on the chain, in lamports;
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
		if now, ok := chain[s.Payers[i].Payer]; ok {
			difference := int64(now) - int64(s.Payers[i].Closing) //nolint:gosec // any sum of lamports fits 63 bits
			s.Payers[i].Chain, s.Payers[i].Difference = &now, &difference
		}
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

// WriteJSON writes the statement as one JSON document.
func (s *Statement) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

// WriteTable writes the statement as text.
func (s *Statement) WriteTable(w io.Writer) error {
	const alignRight = tabwriter.AlignRight
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', alignRight)
	fmt.Fprintln(table, "day (UTC)\ttransactions\tfee\tpriority fee\trent\tother\treceived\tspent\tspent, SOL\t")
	var total DayLine
	row := func(d DayLine) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t\n",
			d.Day, d.Transactions, d.Fee, d.PriorityFee, d.Rent, d.Other, d.Received, d.Amounts.Spent(), sol(d.Amounts.Spent()))
	}
	for _, d := range s.Days {
		row(d)
		total.Transactions += d.Transactions
		total.Amounts = total.Amounts.plus(d.Amounts)
	}
	total.Day = "all"
	row(total)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nAmounts are lamports, except the last column. The same days by kind of transaction; rent is net of the rent that was returned:")
	fmt.Fprintln(w)
	fmt.Fprintln(table, "kind\ttransactions\tfee\tpriority fee\trent\treturned\tother\tmoved\treceived\tspent\t")
	for _, k := range s.byKind() {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
			k.Kind, k.Transactions, k.Fee, k.PriorityFee, k.Rent, k.Returned, k.Other, k.Moved, k.Received, k.Amounts.Spent())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nSince the start of the ledger:")
	fmt.Fprintln(w)
	fmt.Fprintln(table, "fee payer\topening\tspent\tmoved\treceived\tgaps\tclosing\tchain now\tdifference\tunknown\tunexplained\t")
	for i := range s.Payers {
		p := &s.Payers[i]
		chain, difference := "-", "-"
		if p.Chain != nil {
			chain, difference = fmt.Sprint(*p.Chain), fmt.Sprint(*p.Difference)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%d\t%d\t\n",
			p.Payer, p.Opening, p.Spent, p.Moved, p.Received, p.Missing, p.Closing, chain, difference, p.Unknown, p.Unexplained+p.Other)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\n"+s.verdict())
	return err
}

// byKind sums up all days and payers by kind, in the order of Kinds, without kinds that
// have no transactions.
func (s *Statement) byKind() (out []KindLine) {
	for _, kind := range Kinds() {
		sum := KindLine{Kind: kind}
		for _, k := range s.Kinds {
			if k.Kind == kind {
				sum.Transactions += k.Transactions
				sum.Amounts = sum.Amounts.plus(k.Amounts)
			}
		}
		if sum.Transactions > 0 {
			out = append(out, sum)
		}
	}
	return out
}

// verdict explains the figures, and what to do.
func (s *Statement) verdict() string {
	var gaps, unknown, pending bool
	for i := range s.Payers {
		p := &s.Payers[i]
		gaps = gaps || p.Gaps > 0 || p.Unexplained != 0
		unknown = unknown || p.Unknown > 0 || p.Other != 0
		pending = pending || p.Difference != nil && *p.Difference != 0
	}
	switch {
	case len(s.Payers) == 0:
		return "The ledger is empty: it starts when relay serve finds the first finalized transaction of a fee payer."
	case unknown:
		return "Does not agree: a fee payer paid for transactions that the relay did not make. See the relay's log for the signatures; if none of your people sent them, somebody else has the key: replace it."
	case gaps:
		return "Does not agree: history is missing. An endpoint with the role archive might have had it."
	case pending:
		return "Agrees up to the last transaction that was read; the difference comes from transactions that are not final or not read yet. Run it again in a minute."
	default:
		return "Agrees: every lamport is accounted for."
	}
}

// sol formats lamports as SOL.
func sol(lamports int64) string {
	sign := ""
	if lamports < 0 {
		sign, lamports = "-", -lamports
	}
	return fmt.Sprintf("%s%d.%09d", sign, lamports/int64(solana.LAMPORTS_PER_SOL), lamports%int64(solana.LAMPORTS_PER_SOL))
}
