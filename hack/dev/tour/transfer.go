package tour

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/gagliardetto/solana-go"
	"golang.org/x/crypto/nacl/box"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/wallet"
)

// viewingKey decrypts the encrypted notes for its holder.
type viewingKey struct{ public, private *[32]byte }

func newViewingKey(random io.Reader) *viewingKey {
	public, private, err := box.GenerateKey(random)
	withContext("make a viewing key", err)
	return &viewingKey{public, private}
}

// transfer splits the wallet's note into a note for another owner and a note for the change.
// The other owner learns of the transfer by an encrypted note on the chain.
func (t *tour) transfer(ctx context.Context) {
	other := newViewingKey(t.Random)
	transferred := must(wallet.NewNote(t.Random, fundedLamports, t.mint))
	change := must(wallet.NewNote(t.Random, t.note.Amount-fundedLamports, t.mint))
	s := t.prove(ctx, wallet.Spend{Inputs: []wallet.Note{t.note}, Outputs: []wallet.Note{transferred, change}, Leaves: t.leaves})
	sealed := seal(&transferred, other, t.Random)
	s.notes = [][]byte{sealed}
	before := t.readBalances(ctx, solana.PublicKey{})
	result := t.transact(ctx, s)
	t.checkLanded(ctx, result.SolanaSignature, result.Slot, result.LeafIndices, before, 0)
	t.note, t.transferred = change, transferred
	t.updateNote(ctx)
	check(t.transferred.Locate(t.leaves))
	amount := t.openNote(ctx, *result.SolanaSignature, other)
	t.Print.Fact("encrypted note", "%d bytes; the receiver's viewing key opens it on the chain: %s at leaf %d", len(sealed), terminal.Lamports(amount), t.transferred.Index)
	check(equal("amount in the encrypted note", uint64(fundedLamports), amount))
}

// seal encrypts the amount and the blinding of a note, which the receiver needs besides
// their secret.
func seal(note *wallet.Note, to *viewingKey, random io.Reader) []byte {
	blinding := note.Blinding.Bytes()
	plain := append(binary.LittleEndian.AppendUint64(nil, note.Amount), blinding[:]...)
	sealed, err := box.SealAnonymous(nil, plain, to.public, random)
	withContext("seal a note", err)
	return sealed
}

// openNote decrypts the note in the transaction on the chain, as the receiver does.
func (t *tour) openNote(ctx context.Context, text string, key *viewingKey) (amount uint64) {
	signature, err := solana.SignatureFromBase58(text)
	withContext("solana_signature", err)
	call := t.chain.receipt(ctx, signature).call(t.pool.Profile)
	check(equal("number of encrypted notes on the chain", 1, len(call.Notes)))
	plain, ok := box.OpenAnonymous(nil, call.Notes[0], key.public, key.private)
	if !ok || len(plain) < 8 {
		check(errors.New("the encrypted note on the chain does not open with the receiver's viewing key"))
	}
	return binary.LittleEndian.Uint64(plain)
}
