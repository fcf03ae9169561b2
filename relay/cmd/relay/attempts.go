package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/app"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// decidePause is the pause between two checks of the same attempts.
const decidePause = 5 * time.Second

type attemptsCmd struct{ config.AttemptList }

// errUndecided makes relay attempts --end exit with 1.
var errUndecided = errors.New("the endpoints do not show that all attempts have expired: compare each endpoint's slot and block height with an explorer, and give only endpoints that you trust")

// Run lists attempts that should have ended long ago. With --end, it ends those that can no
// longer land, as far as the given endpoints show.
func (c *attemptsCmd) Run(env *environment) error {
	c.EarlierProblems = env.malformed
	url, endpoints, err := c.Load()
	if err != nil {
		return err
	}
	log, err := telemetry.NewLog(env.err, c.Level, c.Logging.Format)
	if err != nil {
		return fmt.Errorf("%w: %w", commandline.ErrUsage, err)
	}
	return withStore(env, url, c.MaxConnections, func(s *store.Store) error {
		if c.End {
			rpc, err := app.Endpoints(endpoints, chain.EndpointsOptions{Log: log})
			if err != nil {
				return err
			}
			defer rpc.Close()
			return c.end(env, s, rpc.Search)
		}
		listed, err := s.LiveAttempts(env, c.Older, c.Limit)
		if err != nil {
			return err
		}
		return c.write(env, listed)
	})
}

// end checks the attempts repeatedly, until no submission waits for the end of an attempt or the
// time of --wait is over.
func (c *attemptsCmd) end(env *environment, s *store.Store, search txmgr.Search) error {
	ctx, cancel := context.WithTimeout(env, c.Wait)
	defer cancel()
	pace := decidePause
	if env.pace > 0 {
		pace = env.pace
	}
	for total := 0; ; {
		// A pass gets env, not ctx: if the timeout cancelled it, submissions would stay leased.
		ended, waiting, err := txmgr.DecideUndecided(env, s, search)
		if err != nil {
			return err
		}
		total += ended
		if waiting == 0 {
			_, err := fmt.Fprintf(env.out, "Ended: %d. No submission waits for the end of an attempt.\n", total)
			return err
		}
		select {
		case <-ctx.Done():
			if _, err := fmt.Fprintf(env.out, "Ended: %d. Undecided: %d.\n", total, waiting); err != nil {
				return err
			}
			return errUndecided
		case <-time.After(pace):
		}
	}
}

// attemptLine is one attempt.
type attemptLine struct {
	JobID                int64         `json:"job_id"`
	RequestID            uuid.UUID     `json:"request_id"`
	Purpose              txmgr.Purpose `json:"purpose"`
	Age                  float64       `json:"age_seconds"`
	BlockhashSlot        uint64        `json:"blockhash_slot"`
	LastValidBlockHeight uint64        `json:"last_valid_block_height"`
	WaitsFor             string        `json:"waits_for"`
	Signature            string        `json:"signature"`
}

func (c *attemptsCmd) write(env *environment, listed []store.LiveAttempt) error {
	lines := make([]attemptLine, len(listed))
	for i, a := range listed {
		lines[i] = attemptLine{a.JobID, a.ID, a.Purpose, a.Age.Seconds(), a.BlockhashSlot, a.LastValidBlockHeight, a.HoldReason, a.Signature.String()}
	}
	if c.JSON {
		encoder := json.NewEncoder(env.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(lines)
	}
	if len(lines) == 0 {
		_, err := fmt.Fprintf(env.out, "No attempt that may still land was signed more than %s ago.\n", c.Older)
		return err
	}
	table := tabwriter.NewWriter(env.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "job\trequest\tpurpose\tage\tblockhash slot\tlast valid height\twaits for\tsignature")
	for _, l := range lines {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n",
			l.JobID, l.RequestID, l.Purpose, inSeconds(l.Age), l.BlockhashSlot, l.LastValidBlockHeight, dash(l.WaitsFor), l.Signature)
	}
	return table.Flush()
}
