package ledger

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/gagliardetto/solana-go"
)

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
	fmt.Fprintln(table, "day (UTC)\ttransactions\tfee\tpriority fee\ttip\trent\tother\treceived\tspent\tspent, SOL\t")
	var total DayLine
	row := func(d DayLine) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t\n",
			d.Day, d.Transactions, d.Fee, d.PriorityFee, d.Tip, d.Rent, d.Other, d.Received, d.Amounts.Spent(), sol(d.Amounts.Spent()))
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
	fmt.Fprintln(table, "kind\ttransactions\tfee\tpriority fee\ttip\trent\treturned\tother\tmoved\treceived\tspent\t")
	for _, k := range s.byKind() {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
			k.Kind, k.Transactions, k.Fee, k.PriorityFee, k.Tip, k.Rent, k.Returned, k.Other, k.Moved, k.Received, k.Amounts.Spent())
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

// sol formats lamports as SOL.
func sol(lamports int64) string {
	sign := ""
	if lamports < 0 {
		sign, lamports = "-", -lamports
	}
	return fmt.Sprintf("%s%d.%09d", sign, lamports/int64(solana.LAMPORTS_PER_SOL), lamports%int64(solana.LAMPORTS_PER_SOL))
}
