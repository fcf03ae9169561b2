package shieldpool

import (
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/refusal"
)

// NoteBound returns the largest size of a note envelope in a transaction of the kind, in bytes.
// It is the format's limit minus the size of a transaction without notes that has the profile's
// account list. table is the lookup table for v0; nil for other formats.
func (p *Pool) NoteBound(k Kind, f Format, table *LookupTable) (int, error) {
	size, err := p.size(k, f, table)
	return f.MaxSize() - size, err
}

// size returns the size of a signed transaction of the kind without notes, in bytes.
func (p *Pool) size(k Kind, f Format, table *LookupTable) (int, error) {
	key := func(b byte) solana.PublicKey { return solana.PublicKey{0: 0xfe, 31: b} }
	payer, in := key(1), &PublicInputs{Nullifiers: [2][32]byte{{31: 1}, {31: 2}}}
	c := &Call{Proof: make([]byte, ProofLength), Inputs: in}
	switch k {
	case KindWithdrawal:
		in.PublicAmount, c.Recipient = -1, key(2)
	case KindSwap:
		in.PublicAmount, c.Swap = -1, &SwapTerms{}
	case KindTransfer:
	default:
		return 0, fmt.Errorf("kind %q is not known: expected transfer, withdrawal or swap", k)
	}
	tx, err := p.Transaction(payer, c, Compute{Format: f}, solana.Hash{}, table)
	if err != nil {
		return 0, err
	}
	tx.Signatures = make([]solana.Signature, tx.Message.Header.NumRequiredSignatures)
	raw, err := tx.MarshalBinary()
	if err != nil {
		return 0, fmt.Errorf("encode transaction: %w", err)
	}
	return len(raw), nil
}

// NoteBounds are the note bounds of the kinds of submission, by format.
type NoteBounds map[Format]map[Kind]int

// NoteBounds returns the bounds of two formats: V1 and the older one, which is v0 with a lookup
// table and legacy without.
func (p *Pool) NoteBounds(table *LookupTable) (NoteBounds, error) {
	out := NoteBounds{}
	for _, f := range []Format{OlderFormat(table), V1} {
		out[f] = map[Kind]int{}
		for _, k := range []Kind{KindTransfer, KindWithdrawal, KindSwap} {
			bound, err := p.NoteBound(k, f, table)
			if err != nil {
				return nil, fmt.Errorf("compute the note bound of a %s: %w", k, err)
			}
			out[f][k] = bound
		}
	}
	return out, nil
}

// Of returns the bounds of the given formats.
func (b NoteBounds) Of(formats []Format) NoteBounds {
	out := NoteBounds{}
	for _, f := range formats {
		out[f] = b[f]
	}
	return out
}

// Largest returns the largest bound of the kind.
func (b NoteBounds) Largest(k Kind) (most int) {
	for _, kinds := range b {
		most = max(most, kinds[k])
	}
	return most
}

// CheckNotes refuses more than two notes (too_many_notes), an empty note (invalid_request), and
// notes whose envelope has more than bound bytes (notes_too_large).
func CheckNotes(notes [][]byte, bound int) error {
	if len(notes) > MaxNotes {
		return refusal.New(refusal.TooManyNotes, "encrypted_notes has %d entries, expected at most %d", len(notes), MaxNotes)
	}
	for i, n := range notes {
		if len(n) == 0 {
			return refusal.New(refusal.InvalidRequest, "encrypted_notes[%d] is empty: expected at least one byte; leave the entry out instead", i)
		}
	}
	if size := NoteEnvelopeSize(notes); size > bound {
		return refusal.New(refusal.NotesTooLarge,
			"encrypted_notes take %d bytes in the transaction (including an envelope of 6 bytes plus 2 for each note), expected at most %d: shorten the notes", size, bound)
	}
	return nil
}
