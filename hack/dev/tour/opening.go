package tour

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// depositUnits is more than any Transact uses (protocol.md §4: up to 186 k).
const depositUnits = 250_000

// visitPool reads the pool from the chain and asks the relay for the same.
func (t *tour) visitPool(ctx context.Context) error {
	tree, err := t.chain.tree(ctx, t.pool)
	if err != nil {
		return err
	}
	t.Print.Fact("program", "%s", t.pool.Profile.ProgramID)
	t.Print.Fact("pool", "%s", t.pool.Address)
	t.Print.Fact("merkle tree", "%s", t.pool.MerkleTree)
	t.Print.Fact("treasury", "%s", t.pool.Treasury)
	t.Print.Fact("root", "%x", tree.Root)
	t.Print.Fact("leaves", "%d", tree.NextIndex)
	empty := merkle.Zero(merkle.Height)
	want := merkle.Bytes(&empty)
	if err := equal("root of a pool just initialised", hex.EncodeToString(want[:]), hex.EncodeToString(tree.Root[:])); err != nil {
		return err
	}
	if t.opening, err = t.readBooks(ctx, solana.PublicKey{}); err != nil {
		return err
	}
	said, err := t.merkleRoot(ctx)
	if err != nil {
		return err
	}
	t.Print.Fact("GET "+contract.MerkleRootPath, "the same, at slot %s", terminal.Grouped(uint64(said.Slot))) //nolint:gosec // a slot
	if err := equal("merkle_tree of GET "+contract.MerkleRootPath, t.pool.MerkleTree.String(), said.MerkleTree); err != nil {
		return err
	}
	return equal("root of GET "+contract.MerkleRootPath, hex.EncodeToString(tree.Root[:]), said.Root)
}

func (t *tour) fundWallet(ctx context.Context) error {
	_, private, err := ed25519.GenerateKey(t.Random)
	if err != nil {
		return fmt.Errorf("make a wallet: %w", err)
	}
	t.wallet = solana.PrivateKey(private)
	done := t.Print.Busy("asking the faucet")
	defer done()
	signature, err := t.chain.fund(ctx, t.wallet.PublicKey(), funding)
	if err != nil {
		return err
	}
	holds, err := t.chain.lamports(ctx, t.wallet.PublicKey())
	if err != nil {
		return err
	}
	done()
	t.Print.Fact("wallet", "%s", t.wallet.PublicKey())
	t.Print.Fact("airdrop", "%s", signature)
	t.Print.Fact("holds", "%s", terminal.Lamports(holds))
	return equal("lamports of the wallet", uint64(funding), holds)
}

// deposit makes the transaction that the relay does not: only the depositor's
// own wallet can sign it.
func (t *tour) deposit(ctx context.Context) error {
	var err error
	if t.note, err = wallet.NewNote(t.Random, depositAmount, t.mint); err != nil {
		return err
	}
	s, err := t.prove(ctx, wallet.Spend{Outputs: []wallet.Note{t.note}, PublicAmount: depositAmount})
	if err != nil {
		return err
	}
	before, err := t.chain.lamports(ctx, t.pool.Address)
	if err != nil {
		return err
	}
	signature, slot, err := t.sendDeposit(ctx, s)
	if err != nil {
		return err
	}
	receipt, err := t.chain.receipt(ctx, signature)
	if err != nil {
		return err
	}
	after, err := t.chain.lamports(ctx, t.pool.Address)
	if err != nil {
		return err
	}
	left, err := t.chain.lamports(ctx, t.wallet.PublicKey())
	if err != nil {
		return err
	}
	tree, err := t.chain.tree(ctx, t.pool)
	if err != nil {
		return err
	}
	t.Print.Fact("signature", "%s", signature)
	t.Print.Fact("slot", "%s", terminal.Grouped(slot))
	t.Print.Fact("amount", "%s", terminal.Lamports(depositAmount))
	t.Print.Fact("pool", "%s → %s", terminal.Grouped(before), terminal.Lamports(after))
	t.Print.Fact("leaves", "%d and %d", tree.NextIndex-2, tree.NextIndex-1)
	if err := equal("lamports of the pool", before+depositAmount, after); err != nil {
		return err
	}
	if err := equal("lamports of the wallet", funding-depositAmount-receipt.fee-nullifierRent, left); err != nil {
		return err
	}
	return equal("next index after two leaves", uint64(2), tree.NextIndex)
}

func (t *tour) sendDeposit(ctx context.Context, s *submission) (solana.Signature, uint64, error) {
	defer t.Print.Busy("sending the deposit and waiting until the chain confirms it")()
	latest, err := t.chain.GetLatestBlockhash(ctx, rpc.CommitmentConfirmed)
	if err != nil {
		return solana.Signature{}, 0, fmt.Errorf("read the latest blockhash: %w", err)
	}
	call := &shieldpool.Call{Proof: s.proof[:], Inputs: &s.public}
	tx, err := t.pool.Transaction(t.wallet.PublicKey(), call, shieldpool.Compute{Limit: depositUnits}, latest.Value.Blockhash, nil)
	if err != nil {
		return solana.Signature{}, 0, err
	}
	if _, err := tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &t.wallet }); err != nil {
		return solana.Signature{}, 0, fmt.Errorf("sign the deposit: %w", err)
	}
	signature, err := t.chain.SendTransactionWithOpts(ctx, tx, rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentConfirmed})
	if err != nil {
		return signature, 0, fmt.Errorf("send the deposit: %w", err)
	}
	slot, err := t.chain.confirmed(ctx, signature)
	return signature, slot, err
}

// register hands the relay a viewing key, which it seals to the compliance
// officer at once.
func (t *tour) register(ctx context.Context) error {
	viewing, err := newViewingKey(t.Random)
	if err != nil {
		return err
	}
	key := hex.EncodeToString(viewing.private[:])
	signature, err := t.wallet.Sign([]byte(shieldpool.DefaultSignInMessage))
	if err != nil {
		return fmt.Errorf("sign the sign-in message: %w", err)
	}
	t.registration = openapi.RegisterRequest{
		UserPubkey: t.wallet.PublicKey().String(), ViewingKey: key, Signature: base64.StdEncoding.EncodeToString(signature[:]),
	}
	answer, err := t.relay.RegisterViewingKeyWithResponse(ctx, t.registration)
	if err != nil {
		return fmt.Errorf("POST %s: %w", contract.ViewingKeyRegisterPath, err)
	}
	if answer.JSON200 == nil {
		return unexpected("POST "+contract.ViewingKeyRegisterPath, "200", answer.HTTPResponse, answer.Body)
	}
	officer, err := t.relay.GetComplianceKeyWithResponse(ctx)
	if err != nil {
		return fmt.Errorf("GET %s: %w", contract.ComplianceKeyPath, err)
	}
	if officer.JSON200 == nil {
		return unexpected("GET "+contract.ComplianceKeyPath, "200", officer.HTTPResponse, officer.Body)
	}
	t.Print.Fact("identifier", "%s", answer.JSON200.Data.Identifier)
	t.Print.Fact("sealed to", "key %s of the compliance officer (GET %s)", officer.JSON200.KeyID, contract.ComplianceKeyPath)
	want := sha256.Sum256([]byte(t.wallet.PublicKey().String() + key))
	return equal("identifier", hex.EncodeToString(want[:]), answer.JSON200.Data.Identifier)
}

// rebuild fetches the pool's commitments and finds the wallet's note among them.
func (t *tour) rebuild(ctx context.Context) error {
	const deposited = 2
	root, err := t.refresh(ctx, deposited)
	if err != nil {
		return err
	}
	if err := t.note.Locate(t.leaves); err != nil {
		return err
	}
	t.Print.Fact("commitments", "%d", len(t.leaves))
	t.Print.Fact("recomputed root", "%s", root.Root)
	t.Print.Fact("GET "+contract.MerkleRootPath, "the same")
	t.Print.Fact("note", "%s at leaf %d", terminal.Lamports(t.note.Amount), t.note.Index)
	return nil
}
