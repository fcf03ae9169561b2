package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/process"
)

// The files of the keys folder.
const (
	feePayerFile         = "fee-payer.json"
	compliancePrivate    = "compliance-private.key"
	compliancePublicFile = "compliance-public.hex"
)

// makeKeys has the relay's own commands make the development keys, unless the
// folder is there. It appears complete or not at all.
func makeKeys(ctx context.Context, relay, folder string) error {
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fresh := folder + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	if err := os.MkdirAll(fresh, 0o700); err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	if _, err := output(ctx, relay, "keygen", filepath.Join(fresh, feePayerFile)); err != nil {
		return err
	}
	public, err := output(ctx, relay, "compliance", "keygen", filepath.Join(fresh, compliancePrivate))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(fresh, compliancePublicFile), public, 0o600); err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	if err := os.Rename(fresh, folder); err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	return nil
}

func feePayer(folder string) (solana.PublicKey, error) {
	key, err := solana.PrivateKeyFromSolanaKeygenFile(filepath.Join(folder, feePayerFile))
	if err != nil {
		return solana.PublicKey{}, fmt.Errorf("read the fee payer's key: %w; delete %s to have new keys made", err, folder)
	}
	return key.PublicKey(), nil
}

// output runs a program to its end. Its error has what the program said.
func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = process.OwnEnvironment(os.Environ())
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w: %s", filepath.Base(program), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out, nil
}
