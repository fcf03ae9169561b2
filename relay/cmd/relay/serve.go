package main

import (
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/app"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
)

// revision is set when a release is linked (-ldflags "-X main.revision=…"); other
// builds tell the version control's.
var revision string

// build is the identity of what runs.
func build() string {
	if revision != "" {
		return revision
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "development"
}

type serveCmd struct{ config.Serve }

// Run serves until the process is told to stop.
func (c *serveCmd) Run(env *environment) error {
	cfg, err := c.Load()
	if err != nil {
		return fmt.Errorf("%w:\n%w", errConfiguration, err)
	}
	log, err := telemetry.NewLog(env.err, c.Level, c.Format)
	if err != nil {
		return fmt.Errorf("%w: %w", errConfiguration, err)
	}
	a, err := app.New(env, app.Options{Config: cfg, Log: log, Version: contract.Version, Build: build()})
	if err != nil {
		return err
	}
	return a.Run(env)
}

type migrateCmd struct {
	config.Database `embed:"" prefix:"database-"`
	config.Logging  `embed:"" prefix:"log-"`
}

// Run migrates and ends.
func (c *migrateCmd) Run(env *environment) error {
	url, err := c.Database.Secret()
	if err != nil {
		return fmt.Errorf("%w: %w", errConfiguration, err)
	}
	log, err := telemetry.NewLog(env.err, c.Level, c.Format)
	if err != nil {
		return fmt.Errorf("%w: %w", errConfiguration, err)
	}
	pool, err := store.Open(env, url.Reveal(), c.MaxConnections)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := store.Migrate(env, pool, log); err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.out, "the schema is up to date")
	return err
}

type versionCmd struct {
	JSON bool `help:"Print JSON."`
}

// Run prints the version.
func (c *versionCmd) Run(env *environment) error {
	if c.JSON {
		return json.NewEncoder(env.out).Encode(map[string]string{"version": contract.Version, "build": build()})
	}
	_, err := fmt.Fprintf(env.out, "relay %s (%s)\n", contract.Version, build())
	return err
}
