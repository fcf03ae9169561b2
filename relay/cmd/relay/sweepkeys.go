package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/app"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// maxSweepKeys is the most keys in one sweep: one status request has room for their
// transactions.
const maxSweepKeys = 100

// payersOf returns the payers that --from names: signers of the list, by their names, and keys in
// files and directories.
func payersOf(env *environment, c *config.Sweep, list config.SignersFile, from []string) ([]txmgr.Payer, error) {
	listed, problems := list.LoadSigners()
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	var files []string
	chosen := listed[:0:0]
	for _, value := range from {
		if i := slices.IndexFunc(listed, func(s config.Signer) bool { return s.Name == value }); i >= 0 {
			chosen = append(chosen, listed[i])
		} else {
			files = append(files, value)
		}
	}
	var payers []txmgr.Payer
	if len(files) > 0 {
		keys, err := keysOf("from", files)
		if err != nil && len(listed) > 0 {
			return nil, fmt.Errorf("%w; or is it meant as the name of a signer? The list has none of that name", err)
		}
		if err != nil {
			return nil, err
		}
		payers = keys
	}
	log, err := telemetry.NewLog(env.err, c.Level, c.Format)
	if err != nil {
		return nil, nil //nolint:nilerr // the check of the flags reports it
	}
	signers, err := app.Signers(env, chosen, log, nil)
	if err == nil {
		err = app.CheckSigners(env, signers, log)
	}
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	for _, s := range signers {
		payers = append(payers, s)
	}
	if len(payers) > maxSweepKeys {
		return nil, fmt.Errorf("--from: expected at most %d payers, received %d", maxSweepKeys, len(payers))
	}
	return payers, nil
}

// keysOf reads the keys in a flag's files and directories.
func keysOf(flag string, paths []string) ([]txmgr.Payer, error) {
	if err := config.CheckKeyPaths(flag, paths); err != nil {
		return nil, err
	}
	read, err := feepayer.ReadKeys(paths)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	if len(read) > maxSweepKeys {
		return nil, fmt.Errorf("--%s: expected at most %d keys, received %d", flag, maxSweepKeys, len(read))
	}
	keys := make([]txmgr.Payer, len(read))
	for i := range read {
		keys[i] = read[i]
	}
	return keys, nil
}

// addressesOf returns the addresses that a flag names, directly or by the files of their
// keys.
func addressesOf(flag string, values []string) ([]solana.PublicKey, error) {
	var out []solana.PublicKey
	for _, value := range values {
		if _, err := os.Stat(value); err == nil {
			keys, err := keysOf(flag, []string{value})
			if err != nil {
				return nil, err
			}
			for _, k := range keys {
				out = append(out, k.PublicKey())
			}
			continue
		}
		address, err := config.ParseAddress(flag, value)
		if err != nil {
			return nil, err
		}
		out = append(out, address)
	}
	for i, address := range out {
		if slices.Contains(out[:i], address) {
			return nil, fmt.Errorf("--%s: %s is given twice: give each once", flag, address)
		}
	}
	if len(out) > maxSweepKeys {
		return nil, fmt.Errorf("--%s: expected at most %d keys, received %d", flag, maxSweepKeys, len(out))
	}
	return out, nil
}
