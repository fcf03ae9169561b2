package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
)

// complianceCmd has the compliance officer's commands. Only export uses the relay's
// database; keygen and open are for an isolated machine.
type complianceCmd struct {
	Keygen complianceKeygenCmd `cmd:"" help:"Make a pair on the officer's own machine: writes the private half, prints the public one for relay serve."`
	Export complianceExportCmd `cmd:"" help:"Write every sealed viewing key of the database to standard output, a line each."`
	Open   complianceOpenCmd   `cmd:"" help:"Open an export with the private key, offline: prints identifier and viewing key, a line each."`
}

type complianceKeygenCmd struct {
	File string `arg:"" help:"File to write the private key to. It must not exist." type:"path"`
}

// Run makes the compliance officer's key pair.
func (c *complianceKeygenCmd) Run(env *environment) error {
	public, private, err := viewingkey.GenerateComplianceKey(rand.Reader)
	if err != nil {
		return err
	}
	if err := viewingkey.WritePrivateKeyFile(c.File, private); err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.out, hex.EncodeToString(public[:]))
	return err
}

type complianceExportCmd struct{ config.Admin }

// Run exports the sealed viewing keys. They stay sealed.
func (c *complianceExportCmd) Run(env *environment) error {
	c.EarlierProblems = env.malformed
	url, err := c.Load()
	if err != nil {
		return err
	}
	return withDatabase(env, url, c.MaxConnections, func(pool *pgxpool.Pool) error {
		s, err := store.New(pool)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(env.out)
		if err := s.EachViewingKey(env, func(r viewingkey.Record) error { return viewingkey.WriteRecord(out, r) }); err != nil {
			return err
		}
		return out.Flush()
	})
}

type complianceOpenCmd struct {
	Key    string `required:"" placeholder:"FILE" help:"Required. File of the private key." type:"path"`
	Export string `arg:"" optional:"" help:"File of the export; standard input when left out." type:"path"`
}

// Run opens records that were sealed to the officer's key.
func (c *complianceOpenCmd) Run(env *environment) error {
	content, err := os.ReadFile(c.Key)
	if err != nil {
		return fmt.Errorf("%w: --key: %w", commandline.ErrUsage, err)
	}
	private, err := viewingkey.ParsePrivateKey(content)
	if err != nil {
		return fmt.Errorf("%w: --key: %w", commandline.ErrUsage, err)
	}
	in := env.in
	if c.Export != "" {
		f, err := os.Open(c.Export)
		if err != nil {
			return fmt.Errorf("%w: %w", commandline.ErrUsage, err)
		}
		defer func() { _ = f.Close() }() // nothing was written, so no error can lose data
		in = f
	}
	out := bufio.NewWriter(env.out)
	sum, err := viewingkey.OpenExport(private, in, out)
	if err := errors.Join(err, out.Flush()); err != nil {
		return err
	}
	fmt.Fprintf(env.err, "opened %d; sealed to another key %d; damaged %d\n", sum.Opened, sum.OtherKey, len(sum.Faults))
	return errors.Join(sum.Faults...)
}
