package main

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/app"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
)

type serveCmd struct{ config.Serve }

// Run serves until the process gets a signal to stop.
func (c *serveCmd) Run(env *environment) error {
	c.EarlierProblems = env.malformed
	if err := checkFeePayerKeys(c.FeePayerKeyFile); err != nil {
		c.EarlierProblems = append(c.EarlierProblems, err)
	}
	cfg, err := c.Load()
	if err != nil {
		return err
	}
	log, err := telemetry.NewLog(env.err, c.Level, c.Format)
	if err != nil {
		return fmt.Errorf("%w: %w", commandline.ErrUsage, err)
	}
	log.InfoContext(env, "configuration loaded", "version", contract.Version, "build", commandline.Build(), "config", cfg)
	a, err := app.New(env, app.Options{Config: cfg, Log: log, Version: contract.Version, Build: commandline.Build()})
	switch {
	case err != nil && env.Err() != nil: // a signal stopped the relay before it served: not a failure
		log.InfoContext(env, "stopped at start", "error", err)
		return nil
	case err != nil:
		return err
	}
	return a.Run(env)
}

// withDatabase opens a connection pool for f, and closes it afterwards.
func withDatabase(env *environment, url config.DatabaseURL, maxConnections int32, f func(*pgxpool.Pool) error) error {
	pool, err := store.Open(env, url.Reveal(), app.DatabaseFiles(url), maxConnections)
	if err != nil {
		return err
	}
	defer pool.Close()
	return f(pool)
}

// withStore is withDatabase with a store. It says what to do about a schema of another release.
func withStore(env *environment, url config.DatabaseURL, maxConnections int32, f func(*store.Store) error) error {
	return withDatabase(env, url, maxConnections, func(pool *pgxpool.Pool) error {
		s, err := store.New(pool)
		if err != nil {
			return err
		}
		if err = f(s); store.Unmigrated(err) {
			err = fmt.Errorf("the database's schema is not that of this release: run relay migrate, or relay serve, which does so at start: %w", err)
		}
		return err
	})
}
