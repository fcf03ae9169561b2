package tour

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// depositUnits are more compute units than any Transact uses (protocol.md §4: up to 186 k).
const depositUnits = 250_000

// visitPool reads the pool from the chain and compares the relay's answer with it.
func (t *tour) visitPool(ctx context.Context) {
	tree := t.chain.tree(ctx, t.pool)
	t.Print.Fact("program", "%s", t.pool.Profile.ProgramID)
	t.Print.Fact("pool", "%s", t.pool.Address)
	t.Print.Fact("merkle tree", "%s", t.pool.MerkleTree)
	t.Print.Fact("treasury", "%s", t.pool.Treasury)
	t.Print.Fact("root", "%x", tree.Root)
	t.Print.Fact("leaves", "%d", tree.NextIndex)
	empty := merkle.Zero(merkle.Height)
	want := merkle.Bytes(&empty)
	check(equal("root of a pool just initialised", hex.EncodeToString(want[:]), hex.EncodeToString(tree.Root[:])))
	t.rent = t.chain.rents(ctx)
	t.openingBalances = t.readBalances(ctx, solana.PublicKey{})
	answer := t.merkleRoot(ctx)
	t.Print.Fact(getRoot, "the same, at slot %s", terminal.Grouped(uint64(answer.Slot))) //nolint:gosec // a slot
	check(equal("merkle_tree of "+getRoot, t.pool.MerkleTree.String(), answer.MerkleTree))
	check(equal("root of "+getRoot, hex.EncodeToString(tree.Root[:]), answer.Root))
}

func (t *tour) fundWallet(ctx context.Context) {
	_, private, err := ed25519.GenerateKey(t.Random)
	withContext("make a wallet", err)
	t.wallet = solana.PrivateKey(private)
	done := t.Print.Busy("asking the faucet")
	defer done()
	signature := t.chain.fund(ctx, t.wallet.PublicKey(), funding)
	holds := t.chain.lamports(ctx, t.wallet.PublicKey())
	done()
	t.Print.Fact("wallet", "%s", t.wallet.PublicKey())
	t.Print.Fact("airdrop", "%s", signature)
	t.Print.Fact("holds", "%s", terminal.Lamports(holds))
	check(equal("lamports of the wallet", uint64(funding), holds))
}

// deposit sends a deposit itself, because only the depositor's wallet can sign it, and not
// the relay.
func (t *tour) deposit(ctx context.Context) {
	t.note = must(wallet.NewNote(t.Random, depositAmount, t.mint))
	s := t.prove(ctx, wallet.Spend{Outputs: []wallet.Note{t.note}, PublicAmount: depositAmount})
	before := t.chain.lamports(ctx, t.pool.Address)
	signature, slot := t.sendDeposit(ctx, s)
	receipt := t.chain.receipt(ctx, signature)
	after := t.chain.lamports(ctx, t.pool.Address)
	left := t.chain.lamports(ctx, t.wallet.PublicKey())
	tree := t.chain.tree(ctx, t.pool)
	t.Print.Fact("signature", "%s", signature)
	t.Print.Fact("slot", "%s", terminal.Grouped(slot))
	t.Print.Fact("amount", "%s", terminal.Lamports(depositAmount))
	t.Print.Fact("pool", "%s → %s", terminal.Grouped(before), terminal.Lamports(after))
	t.Print.Fact("leaves", "%d and %d", tree.NextIndex-2, tree.NextIndex-1)
	check(
		equal("lamports of the pool", before+depositAmount, after),
		equal("lamports of the wallet", funding-depositAmount-receipt.fee-t.rent.nullifiers, left),
		equal("next index after two leaves", uint64(2), tree.NextIndex))
}

func (t *tour) sendDeposit(ctx context.Context, s *submission) (signature solana.Signature, slot uint64) {
	defer t.Print.Busy("sending the deposit and waiting until the chain confirms it")()
	latest, err := t.chain.GetLatestBlockhash(ctx, rpc.CommitmentConfirmed)
	withContext("read the latest blockhash", err)
	call := &shieldpool.Call{Proof: s.proof[:], Inputs: &s.public}
	tx := must(t.pool.Transaction(t.wallet.PublicKey(), call, shieldpool.Compute{Limit: depositUnits}, latest.Value.Blockhash, nil))
	_, err = tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &t.wallet })
	withContext("sign the deposit", err)
	signature, err = t.chain.SendTransactionWithOpts(ctx, tx, rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentConfirmed})
	withContext("send the deposit", err)
	return signature, t.chain.awaitConfirmed(ctx, signature)
}

// register sends the relay a viewing key. The relay encrypts it for the compliance officer.
func (t *tour) register(ctx context.Context) {
	key := hex.EncodeToString(newViewingKey(t.Random).private[:])
	signature, err := t.wallet.Sign([]byte(shieldpool.DefaultSignInMessage))
	withContext("sign the sign-in message", err)
	t.registration = openapi.RegisterRequest{
		UserPubkey: t.wallet.PublicKey().String(), ViewingKey: key, Signature: base64.StdEncoding.EncodeToString(signature[:]),
	}
	const post, get = "POST " + contract.ViewingKeyRegisterPath, "GET " + contract.ComplianceKeyPath
	answer, err := t.relay.RegisterViewingKeyWithResponse(ctx, t.registration)
	withContext(post, err)
	checkAnswer(answer.JSON200 != nil, post, "200", answer.HTTPResponse, answer.Body)
	officer, err := t.relay.GetComplianceKeyWithResponse(ctx)
	withContext(get, err)
	checkAnswer(officer.JSON200 != nil, get, "200", officer.HTTPResponse, officer.Body)
	t.Print.Fact("identifier", "%s", answer.JSON200.Data.Identifier)
	t.Print.Fact("sealed to", "key %s of the compliance officer (%s)", officer.JSON200.KeyID, get)
	want := sha256.Sum256([]byte(t.wallet.PublicKey().String() + key))
	check(equal("identifier", hex.EncodeToString(want[:]), answer.JSON200.Data.Identifier))
}

// rebuild fetches the pool's commitments and finds the wallet's note among them.
func (t *tour) rebuild(ctx context.Context) {
	const deposited = 2
	root := t.refresh(ctx, deposited)
	check(t.note.Locate(t.leaves))
	t.Print.Fact("commitments", "%d", len(t.leaves))
	t.Print.Fact("recomputed root", "%s", root.Root)
	t.Print.Fact(getRoot, "the same")
	t.Print.Fact("note", "%s at leaf %d", terminal.Lamports(t.note.Amount), t.note.Index)
}
