package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/store"
)

type lanesCmd struct{ config.LaneList }

// Run prints how transactions landed, by lane and price band.
func (c *lanesCmd) Run(env *environment) error {
	c.EarlierProblems = env.malformed
	url, err := c.Load()
	if err != nil {
		return err
	}
	return withStore(env, url, c.MaxConnections, func(s *store.Store) error {
		figures, err := s.Lanes(env, time.Now().Add(-c.Since))
		if err != nil {
			return err
		}
		if c.JSON {
			encoder := json.NewEncoder(env.out)
			encoder.SetIndent("", "  ")
			return encoder.Encode(append([]store.LaneFigures{}, figures...))
		}
		return writeLanes(env.out, figures)
	})
}

// writeLanes writes a line for each lane and price band.
func writeLanes(w io.Writer, figures []store.LaneFigures) error {
	if len(figures) == 0 {
		_, err := fmt.Fprintln(w, "No transaction landed or expired in this time.")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "lane\tband from\tlanded\texpired\tlanded, %\tslots p50\tslots p99\tlamports per landing\t")
	for _, f := range figures {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%.1f\t%.0f\t%.0f\t%.0f\t\n", f.Lane, f.Paid, f.Landed, f.Expired,
			100*float64(f.Landed)/float64(f.Landed+f.Expired), f.P50, f.P99, f.Lamports)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nThe lane rpc stands for transactions without a tip. A band goes by priority fee and tip together, in lamports.")
	return err
}
