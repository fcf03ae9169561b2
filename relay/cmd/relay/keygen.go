package main

import (
	"crypto/rand"
	"fmt"

	"github.com/relaypool/relaypool/relay/internal/feepayer"
)

type keygenCmd struct {
	File string `arg:"" help:"File to write, as Solana's JSON array. It must not exist." type:"path"`
}

// Run makes a fee payer's key.
func (c *keygenCmd) Run(env *environment) error {
	key, err := feepayer.Generate(rand.Reader)
	if err != nil {
		return err
	}
	if err := key.WriteFile(c.File); err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.out, key.PublicKey())
	return err
}
