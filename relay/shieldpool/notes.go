package shieldpool

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// MaxNotes is the number of encrypted notes that a submission may contain.
	MaxNotes = 2

	noteMagic          = "CLVK"
	noteVersion        = 1
	envelopeHeaderSize = len(noteMagic) + 2 // magic, version and count
	noteLengthSize     = 2                  // the length before each note
)

// NoteEnvelopeSize is the number of bytes that the notes add to an instruction: 0 without notes.
func NoteEnvelopeSize(notes [][]byte) int {
	if len(notes) == 0 {
		return 0
	}
	n := envelopeHeaderSize
	for _, note := range notes {
		n += noteLengthSize + len(note)
	}
	return n
}

// EncodeNotes returns the envelope "CLVK" ‖ 1 ‖ count ‖ count × (length u16 LE ‖ bytes);
// nil without notes. It refuses more than two notes (too_many_notes) and a note too long
// for its length prefix (notes_too_large).
func EncodeNotes(notes [][]byte) ([]byte, error) {
	if len(notes) == 0 {
		return nil, nil
	}
	if len(notes) > MaxNotes {
		return nil, refusal.New(refusal.TooManyNotes, "encrypted_notes has %d entries, expected at most %d", len(notes), MaxNotes)
	}
	b := make([]byte, 0, NoteEnvelopeSize(notes))
	b = append(b, noteMagic...)
	b = append(b, noteVersion, byte(len(notes))) //nolint:gosec // at most MaxNotes
	for i, n := range notes {
		if len(n) > math.MaxUint16 {
			return nil, refusal.New(refusal.NotesTooLarge, "encrypted_notes[%d] has %d bytes, more than a note can have", i, len(n))
		}
		b = binary.LittleEndian.AppendUint16(b, uint16(len(n))) //nolint:gosec // bounded above
		b = append(b, n...)
	}
	return b, nil
}

// ParseNotes decodes an envelope; empty data has no notes. It refuses a wrong magic or
// version, count 0 or above two, a truncated note or a byte after the last one.
func ParseNotes(b []byte) ([][]byte, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) < envelopeHeaderSize || string(b[:len(noteMagic)]) != noteMagic {
		return nil, fmt.Errorf("note envelope of %d bytes does not start with %s, version and count", len(b), noteMagic)
	}
	if v := b[len(noteMagic)]; v != noteVersion {
		return nil, fmt.Errorf("note envelope has version %d, expected %d", v, noteVersion)
	}
	count := int(b[len(noteMagic)+1])
	if count == 0 || count > MaxNotes {
		return nil, fmt.Errorf("note envelope counts %d notes, expected 1 to %d", count, MaxNotes)
	}
	notes, rest := make([][]byte, 0, count), b[envelopeHeaderSize:]
	for i := range count {
		if len(rest) < noteLengthSize {
			return nil, fmt.Errorf("note envelope ends before the length of note %d", i)
		}
		n := int(binary.LittleEndian.Uint16(rest))
		rest = rest[noteLengthSize:]
		if len(rest) < n {
			return nil, fmt.Errorf("note %d has %d bytes, expected %d", i, len(rest), n)
		}
		notes, rest = append(notes, rest[:n:n]), rest[n:]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("note envelope has %d bytes after its last note, expected none", len(rest))
	}
	return notes, nil
}
