package main

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
)

type migrateCmd struct{ config.Admin }

// Run migrates and ends.
func (c *migrateCmd) Run(env *environment) error {
	c.EarlierProblems = env.malformed
	url, err := c.Load()
	if err != nil {
		return err
	}
	log, err := telemetry.NewLog(env.err, c.Level, c.Format)
	if err != nil {
		return fmt.Errorf("%w: %w", commandline.ErrUsage, err)
	}
	return withDatabase(env, url, c.MaxConnections, func(pool *pgxpool.Pool) error {
		if err := store.Migrate(env, pool, log); err != nil {
			return err
		}
		_, err := fmt.Fprintln(env.out, "the schema is up to date")
		return err
	})
}
