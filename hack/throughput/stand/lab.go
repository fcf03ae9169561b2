// Package stand is what the benchmark measures: relays, a database and a chain,
// each in processes of its own, set up anew for every measurement so that none
// inherits what the one before it left.
package stand

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/postgres"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// payers is how many fee payers the relays share.
const payers = 4

// LabOptions configure a Lab. All but Overlay are required.
type LabOptions struct {
	// Root is the checkout that the relay is built from; State an empty folder.
	Root, State string
	// Node is the program that runs a chain when its first argument is "node".
	Node string
	// Rows are the numbers of finished submissions that a database can begin with.
	Rows []int
	// Overlay is a file for go build -overlay; empty for none.
	Overlay string
	// Progress receives a line for each thing that takes long.
	Progress io.Writer
}

// Lab is what all measurements share: programs, keys, a database server.
type Lab struct {
	LabOptions
	Simulator *simulator.Simulator
	Mint      shieldpool.Mint
	Pool      *shieldpool.Pool

	relay, key, compliance string
	server                 *postgres.Server
	keys                   []solana.PublicKey
	opened                 int
}

// NewLab builds the relay, starts the database server and fills the databases
// that measurements are copies of. Close ends it.
func NewLab(ctx context.Context, o LabOptions) (_ *Lab, err error) {
	if o.Root == "" || o.State == "" || o.Node == "" || len(o.Rows) == 0 || o.Progress == nil {
		return nil, errors.New("the lab needs Root, State, Node, Rows and Progress")
	}
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		return nil, err
	}
	l := &Lab{LabOptions: o, Mint: profile.Mints[0], Pool: pool, relay: filepath.Join(o.State, "relay"), key: filepath.Join(o.Root, "hack", "circuit", "verification_key.json")}
	text, err := os.ReadFile(filepath.Clean(l.key))
	if err != nil {
		return nil, fmt.Errorf("read the development key: %w", err)
	}
	if l.Simulator, err = simulator.New(text, simulator.DevelopmentSeed); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{l.build, l.makePayers, l.makeCompliance, l.startServer} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, l.Close(context.WithoutCancel(ctx)))
		}
	}
	for _, rows := range o.Rows {
		l.say("filling a database with %d finished submissions", rows)
		if err := l.fill(ctx, rows); err != nil {
			return nil, errors.Join(err, l.Close(context.WithoutCancel(ctx)))
		}
	}
	return l, nil
}

// Close ends the database server.
func (l *Lab) Close(ctx context.Context) error {
	if l.server == nil {
		return nil
	}
	return l.server.Stop(ctx)
}

// Remove deletes the server's data, which may be elsewhere than in State.
func (l *Lab) Remove() error { return os.RemoveAll(l.server.Dir()) }

func (l *Lab) say(format string, args ...any) { fmt.Fprintf(l.Progress, format+"\n", args...) }

func (l *Lab) file(name string) string { return filepath.Join(l.State, name) }

func (l *Lab) build(ctx context.Context) error {
	l.say("building the relay")
	args := []string{"build", "-trimpath", "-buildvcs=false"}
	if l.Overlay != "" {
		args = append(args, "-overlay", l.Overlay)
	}
	build := exec.CommandContext(ctx, "go", append(args, "-o", l.relay, "./relay/cmd/relay")...)
	build.Dir = l.Root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the relay: %w\n%s", err, out)
	}
	return nil
}

// makePayers writes keys of a chain that is worth nothing.
func (l *Lab) makePayers(context.Context) error {
	folder := l.file("payers")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("make the fee payers' folder: %w", err)
	}
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // see above
	for i := range payers {
		var seed []byte
		for len(seed) < ed25519.SeedSize {
			seed = binary.LittleEndian.AppendUint64(seed, r.Uint64())
		}
		key := ed25519.NewKeyFromSeed(seed)
		numbers := make([]int, len(key))
		for n, b := range key {
			numbers[n] = int(b)
		}
		text, err := json.Marshal(numbers)
		if err != nil {
			return fmt.Errorf("encode a fee payer's key: %w", err)
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("payer-%d.json", i+1)), text, 0o600); err != nil {
			return fmt.Errorf("write a fee payer's key: %w", err)
		}
		l.keys = append(l.keys, solana.PrivateKey(key).PublicKey())
	}
	return nil
}

func (l *Lab) makeCompliance(ctx context.Context) error {
	public, err := l.command(ctx, "compliance", "keygen", l.file("compliance-private.key"))
	l.compliance = strings.TrimSpace(public)
	return err
}

// command runs the relay's program for something short.
func (l *Lab) command(ctx context.Context, args ...string) (stdout string, err error) {
	command := exec.CommandContext(ctx, l.relay, args...)
	command.Env = process.OwnEnvironment(os.Environ())
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("run relay %s: %w", args[0], err)
	}
	return string(out), nil
}
