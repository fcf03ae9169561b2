package localnet_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/hack/wallet/wallettest"
	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// client is a client of the pool with a prover of the development circuit.
type client struct {
	*fixture
	prover *wallet.Prover
	pool   *shieldpool.Pool
	mint   fr.Element
	leaves []fr.Element
}

// prove makes the Transact of a spend, with a proof.
func (c *client) prove(s wallet.Spend, to solana.PublicKey) solana.Instruction {
	c.t.Helper()
	s.Mint, s.Leaves, s.At = c.mint, c.leaves, time.Now()
	if !to.IsZero() {
		s.ExtDataHash = wallet.ExtDataHash(to)
	}
	w, err := s.Witness(rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	proof, raw, _, err := c.prover.Prove(c.t.Context(), w)
	if err != nil {
		c.t.Fatal(err)
	}
	inputs, err := shieldpool.ParsePublicInputs(raw[:])
	if err != nil {
		c.t.Fatal(err)
	}
	ix, err := c.pool.Instruction(c.payer.PublicKey(), &shieldpool.Call{
		Proof: proof[:], Inputs: inputs, Destination: shieldpool.Destination{Recipient: to},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return ix
}

// land sends an instruction and stores the leaves that it appended.
func (c *client) land(ix solana.Instruction) {
	c.t.Helper()
	c.send(c.sign(c.blockhash(rpc.CommitmentProcessed), unitLimit(400_000), ix))
	data, err := ix.Data()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, leaf := range c.pool.Profile.Leaves(data) {
		e, err := merkle.FromBytes(leaf)
		if err != nil {
			c.t.Fatal(err)
		}
		c.leaves = append(c.leaves, e)
	}
	c.Advance(1)
}

// preflightError sends an instruction and returns the error of its preflight.
func (c *client) preflightError(ix solana.Instruction) string {
	c.t.Helper()
	_, err := c.SendTransactionWithOpts(c.t.Context(), c.sign(c.blockhash(rpc.CommitmentProcessed), unitLimit(400_000), ix),
		rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentProcessed})
	var refusal *jsonrpc.RPCError
	if !errors.As(err, &refusal) {
		c.t.Fatalf("got %v, want an RPC error", err)
	}
	return refusal.Message
}

func (c *client) note(amount uint64) wallet.Note {
	c.t.Helper()
	n, err := wallet.NewNote(rand.Reader, amount, c.mint)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func (c *client) locate(n *wallet.Note) {
	c.t.Helper()
	if err := n.Locate(c.leaves); err != nil {
		c.t.Fatal(err)
	}
}

// newClient makes a chain with the verifying key of the development circuit.
func newClient(t *testing.T) *client {
	t.Helper()
	prover := wallettest.Prover(t)
	verifyingKey, err := prover.VerificationKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := pool(t)
	mint, err := merkle.FromBytes(p.Mint.Field)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, localnet.Options{VerifyingKey: verifyingKey, Initialised: true})
	return &client{fixture: f, prover: prover, pool: p, mint: mint}
}

// TestSpendsWithProofsOfTheDevelopmentCircuit makes a deposit, a withdrawal, a transfer
// and a second withdrawal, each with a proof of the development circuit.
func TestSpendsWithProofsOfTheDevelopmentCircuit(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	balance := func(of solana.PublicKey) uint64 {
		out, err := c.GetBalance(t.Context(), of, rpc.CommitmentProcessed)
		if err != nil {
			t.Fatal(err)
		}
		return out.Value
	}

	deposited := c.note(1_000_000_000)
	c.land(c.prove(wallet.Spend{Outputs: []wallet.Note{deposited}, PublicAmount: 1_000_000_000}, solana.PublicKey{}))
	c.locate(&deposited)

	change := c.note(900_000_000)
	withdrawal := wallet.Spend{Inputs: []wallet.Note{deposited}, Outputs: []wallet.Note{change}, PublicAmount: -100_000_000}
	stale := slices.Clone(c.leaves)
	first := c.prove(withdrawal, address("recipient"))
	toAnother := c.prove(withdrawal, address("another"))
	c.land(first)
	if got := balance(address("recipient")); got != 94_700_000 {
		t.Errorf("the recipient has %d lamports, want 94700000", got)
	}
	if got := c.preflightError(toAnother); got != preflightMessage(shieldpool.CodeDoubleSpend) {
		t.Errorf("the same note to another recipient: %q, want DoubleSpend", got)
	}

	c.locate(&change)
	smallNote, largeNote := c.note(300_000_000), c.note(600_000_000)
	c.land(c.prove(wallet.Spend{Inputs: []wallet.Note{change}, Outputs: []wallet.Note{smallNote, largeNote}, Unused: true}, solana.PublicKey{}))
	c.locate(&smallNote)
	c.locate(&largeNote)
	c.land(c.prove(wallet.Spend{Inputs: []wallet.Note{smallNote, largeNote}, PublicAmount: -900_000_000}, address("recipient")))
	if got, want := balance(address("recipient")), uint64(94_700_000+892_300_000); got != want {
		t.Errorf("the recipient has %d lamports, want %d", got, want)
	}

	// A proof is valid for one recipient only, and not for a tree that never existed.
	late := c.note(20_000_000)
	c.land(c.prove(wallet.Spend{Outputs: []wallet.Note{late}, PublicAmount: 20_000_000}, solana.PublicKey{}))
	c.locate(&late)
	redirected := c.prove(wallet.Spend{Inputs: []wallet.Note{late}, PublicAmount: -20_000_000}, address("recipient"))
	redirected.Accounts()[6].PublicKey = address("thief")
	if got := c.preflightError(redirected); got != preflightMessage(shieldpool.CodeProofInvalid) {
		t.Errorf("a proof for another recipient: %q, want ProofInvalid", got)
	}
	invented := late.Commitment()
	c.leaves, late.Index = slices.Concat(stale, []fr.Element{invented}), uint64(len(stale))
	if got := c.preflightError(c.prove(wallet.Spend{Inputs: []wallet.Note{late}, PublicAmount: -20_000_000}, address("recipient"))); got != preflightMessage(shieldpool.CodeRootNotFound) {
		t.Errorf("a proof for a tree that never existed: %q, want RootNotFound", got)
	}
}

func preflightMessage(code uint32) string {
	return fmt.Sprintf("Transaction simulation failed: Error processing Instruction 1: custom program error: 0x%x", code)
}
