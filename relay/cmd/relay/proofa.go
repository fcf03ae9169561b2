package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/store"
)

type proofACmd struct{ config.ProofA }

// Run lists the pinned encodings. With --forget, it then deletes them.
func (c *proofACmd) Run(env *environment) error {
	c.EarlierProblems = env.malformed
	url, err := c.Load()
	if err != nil {
		return err
	}
	return withStore(env, url, c.MaxConnections, func(s *store.Store) error {
		pins, err := s.ProofAPins(env)
		if err != nil {
			return err
		}
		if len(pins) == 0 {
			_, err := fmt.Fprintln(env.out, "No encoding is pinned: both are tried, and the first finalized transaction pins its own.")
			return err
		}
		table := tabwriter.NewWriter(env.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "verifying key\tA\tsince\tlearnt from")
		for _, p := range pins {
			fmt.Fprintf(table, "%x\t%s\t%s\t%s\n", p.KeyHash, p.Encoding, p.Since.UTC().Format(time.RFC3339), p.Signature)
		}
		if err := table.Flush(); err != nil || !c.Forget {
			return err
		}
		n, err := s.ForgetProofAPins(env)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(env.out, "\nForgot %d.\n", n)
		return err
	})
}
