package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/store"
)

type indexCmd struct {
	Status  indexStatusCmd  `cmd:"" help:"Show how many leaves are stored and served, and the slot up to which the chain was read."`
	Verify  indexVerifyCmd  `cmd:"" help:"Hash all stored leaves and compare the result with the checkpoints from which relays start. Ends with 1 when one is wrong."`
	Rebuild indexRebuildCmd `cmd:"" help:"Hash all stored leaves and write the checkpoints anew. Relays may run meanwhile. The leaves themselves stay: relays read leaves again that the chain disproves."`
}

type (
	indexStatusCmd  struct{ config.Admin }
	indexVerifyCmd  struct{ config.Admin }
	indexRebuildCmd struct{ config.Admin }
)

var errWrongCheckpoints = errors.New("leaves and checkpoints differ: run relay index rebuild; relays then read again what the chain disproves")

// Run prints the state of each pool's index.
func (c *indexStatusCmd) Run(env *environment) error {
	return eachIndex(env, c.Admin, func(*store.Commitments, commitments.Position) error { return nil })
}

// Run fails when a checkpoint is wrong.
func (c *indexVerifyCmd) Run(env *environment) error { return hashIndexes(env, c.Admin, false) }

// Run writes the checkpoints anew.
func (c *indexRebuildCmd) Run(env *environment) error { return hashIndexes(env, c.Admin, true) }

func hashIndexes(env *environment, flags config.Admin, repair bool) error {
	return eachIndex(env, flags, func(s *store.Commitments, pos commitments.Position) error {
		began, shown := time.Now(), time.Now()
		v, err := commitments.Verify(env, s, pos, repair, func(done uint64) {
			if now := time.Now(); now.Sub(shown) >= time.Second {
				shown = now
				left := now.Sub(began) * time.Duration(pos.Leaves-done) / time.Duration(done) //nolint:gosec // leaves are below 2^32
				fmt.Fprintf(env.err, "hashed %d of %d leaves, %s left\n", done, pos.Leaves, left.Round(time.Second))
			}
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(env.out, "  root %x, %d checkpoints, %d of them wrong\n", v.Root, v.Checkpoints, v.Wrong)
		if v.Wrong > 0 {
			return errWrongCheckpoints
		}
		return nil
	})
}

// eachIndex prints the state of each pool's index and calls f for it.
func eachIndex(env *environment, flags config.Admin, f func(*store.Commitments, commitments.Position) error) error {
	flags.EarlierProblems = env.malformed
	url, err := flags.Load()
	if err != nil {
		return err
	}
	return withStore(env, url, flags.MaxConnections, func(s *store.Store) error {
		pools, err := s.IndexedPools(env)
		if err != nil {
			return err
		}
		if len(pools) == 0 {
			_, err := fmt.Fprintln(env.out, "No relay has read leaves yet.")
			return err
		}
		for _, pool := range pools {
			index := s.Commitments(pool)
			pos, err := index.Position(env)
			if err != nil {
				return err
			}
			fmt.Fprintf(env.out, "pool %s: %d leaves stored, %d served, read up to slot %d, generation %d\n", pool, pos.Leaves, pos.Published, pos.Slot, pos.Generation)
			if err := f(index, pos); err != nil {
				return err
			}
		}
		return nil
	})
}
