package main

import (
	"fmt"

	"github.com/relaypool/relaypool/controllers/internal/manager"
	"github.com/relaypool/relaypool/controllers/internal/settings"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
)

type runCmd struct {
	Settings settings.Run `embed:""`
}

// Run runs the operator until env is cancelled.
func (c *runCmd) Run(env *environment) error {
	c.Settings.EarlierProblems = env.malformed
	cfg, err := c.Settings.Load()
	if err != nil {
		return err
	}
	log, err := manager.NewLog(env.err, c.Settings.Logging)
	if err != nil {
		return fmt.Errorf("%w: %w", commandline.ErrUsage, err)
	}
	manager.Redirect(log)
	log.InfoContext(env, "configuration loaded", "version", contract.Version, "build", commandline.Build(), "config", cfg)
	m, err := manager.New(manager.Options{Config: cfg, Log: log})
	if err != nil {
		return err
	}
	if err := m.Add(manager.Fleets{Config: cfg, Log: log}); err != nil {
		return err
	}
	return m.Run(env)
}
