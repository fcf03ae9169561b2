package main

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

type pauseCmd struct {
	Name string `arg:"" help:"Name of the RelayPool."`
}

// Run pauses the operator's work on a RelayPool.
func (c *pauseCmd) Run(env *environment) error { return setPaused(env, c.Name, true) }

type resumeCmd struct {
	Name string `arg:"" help:"Name of the RelayPool."`
}

// Run ends the pause of a RelayPool.
func (c *resumeCmd) Run(env *environment) error { return setPaused(env, c.Name, false) }

func setPaused(env *environment, name string, paused bool) error {
	cluster, err := env.connect()
	if err != nil {
		return err
	}
	pool, err := cluster.relayPool(env, name)
	if err != nil {
		return err
	}
	done := map[bool]string{true: "paused", false: "resumed"}[paused]
	if pool.Spec.Paused == paused {
		fmt.Fprintf(env.out, "RelayPool %s/%s is already %s\n", pool.Namespace, name, done)
		return nil
	}
	before := pool.DeepCopy()
	pool.Spec.Paused = paused
	if err := cluster.Patch(env, pool, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change spec.paused of RelayPool %s: %w", name, err)
	}
	fmt.Fprintf(env.out, "RelayPool %s/%s %s\n", pool.Namespace, name, done)
	return nil
}
