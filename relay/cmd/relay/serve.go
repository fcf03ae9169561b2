package main

import (
	"fmt"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/app"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
)

type serveCmd struct{ config.Serve }

// Run serves until the process is told to stop.
func (c *serveCmd) Run(env *environment) error {
	c.Found = env.malformed
	for _, path := range c.FeePayerKeyFile {
		if err := checkFeePayerKey(path); err != nil {
			c.Found = append(c.Found, err)
		}
	}
	cfg, err := c.Load()
	if err != nil {
		return err
	}
	log, err := telemetry.NewLog(env.err, c.Level, c.Format)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	log.InfoContext(env, "Loaded configuration", "version", contract.Version, "build", build(), "config", cfg)
	a, err := app.New(env, app.Options{Config: cfg, Log: log, Version: contract.Version, Build: build()})
	if err != nil {
		return err
	}
	return a.Run(env)
}

// checkFeePayerKey looks into the key's file, so that a damaged one is listed
// with the other problems. That there is none is for the configuration to say.
func checkFeePayerKey(path string) error {
	content, err := os.ReadFile(path)
	if err != nil || len(content) == 0 {
		return nil //nolint:nilerr // config.Serve.Load lists it
	}
	if _, err := feepayer.Parse(content); err != nil {
		return fmt.Errorf("--fee-payer-key-file ($%s): %w", contract.EnvFeePayerKeyFile, err)
	}
	return nil
}

type migrateCmd struct{ config.Admin }

// Run migrates and ends.
func (c *migrateCmd) Run(env *environment) error {
	c.Found = env.malformed
	url, err := c.Load()
	if err != nil {
		return err
	}
	log, err := telemetry.NewLog(env.err, c.Level, c.Format)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return withDatabase(env, url, c.MaxConnections, func(pool *pgxpool.Pool) error {
		if err := store.Migrate(env, pool, log); err != nil {
			return err
		}
		_, err := fmt.Fprintln(env.out, "the schema is up to date")
		return err
	})
}

// withDatabase lends a connection pool to f.
func withDatabase(env *environment, url config.Secret, maxConnections int32, f func(*pgxpool.Pool) error) error {
	pool, err := store.Open(env, url.Reveal(), maxConnections)
	if err != nil {
		return err
	}
	defer pool.Close()
	return f(pool)
}
