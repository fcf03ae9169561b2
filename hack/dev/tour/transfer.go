package tour

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/gagliardetto/solana-go"
	"golang.org/x/crypto/nacl/box"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/relay/contract"
)

// viewingKey opens the encrypted notes that are meant for its holder.
type viewingKey struct{ public, private *[32]byte }

func newViewingKey(random io.Reader) (*viewingKey, error) {
	public, private, err := box.GenerateKey(random)
	if err != nil {
		return nil, fmt.Errorf("make a viewing key: %w", err)
	}
	return &viewingKey{public, private}, nil
}

// transfer splits the wallet's note into one for somebody else and one for the
// change. The other one learns of it by an encrypted note on the chain.
func (t *tour) transfer(ctx context.Context) error {
	other, err := newViewingKey(t.Random)
	if err != nil {
		return err
	}
	given, err := wallet.NewNote(t.Random, gift, t.mint)
	if err != nil {
		return err
	}
	kept, err := wallet.NewNote(t.Random, t.note.Amount-gift, t.mint)
	if err != nil {
		return err
	}
	s, err := t.prove(ctx, wallet.Spend{Inputs: []wallet.Note{t.note}, Outputs: []wallet.Note{given, kept}, Leaves: t.leaves})
	if err != nil {
		return err
	}
	sealed, err := seal(&given, other, t.Random)
	if err != nil {
		return err
	}
	s.notes = [][]byte{sealed}
	before, err := t.readBooks(ctx, solana.PublicKey{})
	if err != nil {
		return err
	}
	result, err := t.transact(ctx, s)
	if err != nil {
		return err
	}
	if err := t.landed(ctx, result.SolanaSignature, result.Slot, result.LeafIndices, before, 0); err != nil {
		return err
	}
	t.note, t.given = kept, given
	if err := t.follow(ctx); err != nil {
		return err
	}
	if err := t.given.Locate(t.leaves); err != nil {
		return err
	}
	amount, err := t.openNote(ctx, *result.SolanaSignature, other)
	if err != nil {
		return err
	}
	t.Print.Fact("encrypted note", "%d bytes; the receiver's viewing key opens it on the chain: %s at leaf %d", len(sealed), terminal.Lamports(amount), t.given.Index)
	return equal("amount in the encrypted note", uint64(gift), amount)
}

// seal encrypts what the receiver needs beside their own secret: the amount and
// the blinding.
func seal(note *wallet.Note, to *viewingKey, random io.Reader) ([]byte, error) {
	blinding := note.Blinding.Bytes()
	plain := append(binary.LittleEndian.AppendUint64(nil, note.Amount), blinding[:]...)
	sealed, err := box.SealAnonymous(nil, plain, to.public, random)
	if err != nil {
		return nil, fmt.Errorf("seal a note: %w", err)
	}
	return sealed, nil
}

// openNote reads the transaction from the chain as its receiver does.
func (t *tour) openNote(ctx context.Context, text string, key *viewingKey) (amount uint64, err error) {
	signature, err := solana.SignatureFromBase58(text)
	if err != nil {
		return 0, fmt.Errorf("solana_signature: %w", err)
	}
	receipt, err := t.chain.receipt(ctx, signature)
	if err != nil {
		return 0, err
	}
	call, err := receipt.call(t.pool.Profile)
	if err != nil {
		return 0, err
	}
	if err := equal("number of encrypted notes on the chain", 1, len(call.Notes)); err != nil {
		return 0, err
	}
	plain, ok := box.OpenAnonymous(nil, call.Notes[0], key.public, key.private)
	if !ok || len(plain) < 8 {
		return 0, errors.New("the encrypted note on the chain does not open with the receiver's viewing key")
	}
	return binary.LittleEndian.Uint64(plain), nil
}

// balance adds up what the tour moved, and looks for work left over.
func (t *tour) balance(ctx context.Context) error {
	now, err := t.readBooks(ctx, solana.PublicKey{})
	if err != nil {
		return err
	}
	backlog, err := t.relay.GetBacklogWithResponse(ctx)
	if err != nil {
		return fmt.Errorf("GET %s: %w", contract.BacklogPath, err)
	}
	if backlog.JSON200 == nil {
		return unexpected("GET "+contract.BacklogPath, "200", backlog.HTTPResponse, backlog.Body)
	}
	var fees uint64
	for _, gross := range []uint64{payout, laterPayout, swapped, returned} {
		fees += t.pool.Profile.Fees.Fee(gross)
	}
	kept := t.note.Amount + t.later.Amount
	t.Print.Fact("deposited", "%s", terminal.Lamports(depositAmount))
	t.Print.Fact("withdrawn", "%s", terminal.Lamports(payout+laterPayout))
	t.Print.Fact("swapped", "%s for %s; %s more were returned", terminal.Lamports(swapped), units(t.tokens), terminal.Grouped(returned))
	t.Print.Fact("fees of these", "%s", terminal.Lamports(fees))
	t.Print.Fact("left in the pool", "%s = %s in the wallet's notes and %s in the given one", terminal.Lamports(now.pool-t.opening.pool), terminal.Grouped(kept), terminal.Grouped(gift))
	t.Print.Fact("treasury", "%s more", terminal.Lamports(now.treasury-t.opening.treasury))
	t.Print.Fact("the relay paid", "%s for two withdrawals, a transfer and two swaps", terminal.Lamports(t.opening.payer-now.payer))
	t.Print.Fact("GET "+contract.BacklogPath, "%d pending", backlog.JSON200.PendingCount)
	return errors.Join(
		equal("lamports left in the pool", kept+gift, now.pool-t.opening.pool),
		equal("lamports left in the pool beside deposits and withdrawals", uint64(depositAmount-payout-laterPayout-swapped-returned), now.pool-t.opening.pool),
		equal("lamports that the relay paid", t.paidByRelay, t.opening.payer-now.payer),
		equal("lamports that the treasury earned", fees, now.treasury-t.opening.treasury),
		equal("submissions that are pending", 0, backlog.JSON200.PendingCount))
}
