package viewingkey

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/nacl/box"
)

// openedLine is one line of the opened export.
type openedLine struct {
	Identifier string `json:"identifier"`
	ViewingKey string `json:"viewing_key"`
}

// Errors of Open that callers handle differently; test with errors.Is.
var (
	// ErrOtherKey: the record was sealed to another compliance key.
	ErrOtherKey = errors.New("sealed to another compliance key")
	// ErrDamaged: the record's box does not open, or the viewing key in it was not
	// registered under the record's identifier.
	ErrDamaged = errors.New("damaged, or mixed up with another record")
)

// Open opens one record with the officer's key. It fails with ErrOtherKey or ErrDamaged.
func Open(private PrivateKey, r Record) (viewingKey [32]byte, err error) {
	public := private.public()
	if id := KeyID(public); r.KeyID != id {
		return [32]byte{}, fmt.Errorf("%w: the record is sealed to key %s, the given private key belongs to key %s", ErrOtherKey, r.KeyID, id)
	}
	opened, ok := box.OpenAnonymous(nil, r.Sealed, &public, &private.bytes)
	if !ok || len(opened) != len(viewingKey) {
		return [32]byte{}, ErrDamaged
	}
	viewingKey = [32]byte(opened)
	if fingerprint(r.Identifier, viewingKey) != r.Fingerprint {
		return [32]byte{}, ErrDamaged
	}
	return viewingKey, nil
}

// Summary counts what OpenExport did with an export's lines.
type Summary struct {
	Opened int
	// OtherKey counts records sealed to another compliance key, as after a key rotation.
	OtherKey int
	// Faults has one error for each damaged line, with the line's number.
	Faults []error
}

// maxLine is the longest line of an export in bytes; a valid line has about 300.
const maxLine = 64 << 10

// OpenExport reads an export and opens its records. For each record that the key
// opens, it writes one line of JSON with identifier and viewing_key. A line that does
// not open is counted in the Summary and does not stop the others. The error is only
// for faults of reading and writing.
func OpenExport(private PrivateKey, export io.Reader, opened io.Writer) (Summary, error) {
	var summary Summary
	lines := bufio.NewScanner(export)
	lines.Buffer(nil, maxLine)
	out := json.NewEncoder(opened)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		line, err := openLine(private, lines.Bytes())
		switch {
		case errors.Is(err, ErrOtherKey):
			summary.OtherKey++
			continue
		case err != nil:
			summary.Faults = append(summary.Faults, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		if err := out.Encode(line); err != nil {
			return summary, fmt.Errorf("write opened viewing keys: %w", err)
		}
		summary.Opened++
	}
	if err := lines.Err(); err != nil {
		return summary, fmt.Errorf("read export: %w", err)
	}
	return summary, nil
}

func openLine(private PrivateKey, text []byte) (openedLine, error) {
	r, err := parseRecord(text)
	if err != nil {
		return openedLine{}, err
	}
	key, err := Open(private, r)
	if err != nil {
		return openedLine{}, err
	}
	return openedLine{Identifier: hex.EncodeToString(r.Identifier[:]), ViewingKey: hex.EncodeToString(key[:])}, nil
}

func parseRecord(text []byte) (Record, error) {
	var line exportLine
	if err := json.Unmarshal(text, &line); err != nil {
		return Record{}, fmt.Errorf("want a record as `relay compliance export` writes it, received %d bytes of other text", len(text))
	}
	r := Record{Sealed: line.Sealed, KeyID: line.KeyID}
	var fault string
	if r.Identifier, fault = parseHex32(line.Identifier); fault != "" {
		return Record{}, fmt.Errorf("identifier: want 64 hexadecimal digits, received %s", fault)
	}
	if r.Fingerprint, fault = parseHex32(line.Fingerprint); fault != "" {
		return Record{}, fmt.Errorf("fingerprint: want 64 hexadecimal digits, received %s", fault)
	}
	if len(r.Sealed) != SealedSize {
		return Record{}, fmt.Errorf("sealed: want %d bytes in base64, received %d", SealedSize, len(r.Sealed))
	}
	return r, nil
}
