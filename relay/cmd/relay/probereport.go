package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

// probeReport is the output of relay probe.
type probeReport struct {
	// OK is false if a check failed, or if the result of a check of the pool or of a payer is
	// unknown; see conclude.
	OK        bool              `json:"ok"`
	Endpoints []probedEndpoint  `json:"endpoints"`
	Checks    []poolcheck.Check `json:"checks"`
	Payers    []probedPayer     `json:"fee_payers"`
}

func (r *probeReport) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r *probeReport) writeTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	number := func(n *uint64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	fmt.Fprintln(table, "endpoint\tstate\troles\tversion\tslot\tlag\thistory\tfound\twhat to do")
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Name, e.State, strings.Join(e.Roles, ","),
			dash(e.Version), number(e.Slot), number(e.Lag), number(e.History), e.Found, dash(e.Remedy))
	}
	fmt.Fprintln(table, "\ncheck\tstate\tsubject\tfound\twhat to do")
	for _, c := range r.Checks {
		found := c.Found
		if c.State == poolcheck.Failed {
			found += "; expected " + c.Expected
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", c.Name, c.State, dash(c.Subject), found, dash(c.Remedy))
	}
	if len(r.Payers) > 0 {
		fmt.Fprintln(table, "\nfee payer\tstate\tlamports\ttransactions\trunway\twhat to do")
	}
	for i := range r.Payers {
		p, runway := &r.Payers[i], "-"
		if p.Runway != nil {
			runway = fmt.Sprintf("%.1f h", *p.Runway)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Address, p.State, number(p.Lamports), number(p.Transactions), runway, dash(p.Remedy))
	}
	return table.Flush()
}

// conclude sets OK. It ignores a check that needs a landed transaction if the result of the check
// is unknown, because there may be no transaction to compare with.
func (r *probeReport) conclude() {
	r.OK = true
	for i := range r.Endpoints {
		r.OK = r.OK && r.Endpoints[i].State != poolcheck.Failed
	}
	for _, c := range r.Checks {
		needsLanded := c.Name == poolcheck.CheckTransact || c.Name == poolcheck.CheckTransactSwap || c.Name == poolcheck.CheckLandedProof
		r.OK = r.OK && (c.State == poolcheck.OK || c.State == poolcheck.Unknown && needsLanded)
	}
	for i := range r.Payers {
		r.OK = r.OK && r.Payers[i].State == poolcheck.OK
	}
}
