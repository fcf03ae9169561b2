package viewingkey

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
)

// exportLine is one line of an export: a Record as JSON.
type exportLine struct {
	Identifier  string `json:"identifier"`
	Sealed      []byte `json:"sealed"` // encoding/json writes it in standard base64
	Fingerprint string `json:"fingerprint"`
	KeyID       string `json:"key_id"`
}

// WriteRecord writes the record as one line of an export: JSON with identifier
// (hexadecimal), sealed (standard base64), fingerprint (hexadecimal) and key_id.
func WriteRecord(w io.Writer, r Record) error {
	line := exportLine{
		Identifier:  hex.EncodeToString(r.Identifier[:]),
		Sealed:      r.Sealed,
		Fingerprint: hex.EncodeToString(r.Fingerprint[:]),
		KeyID:       r.KeyID,
	}
	if err := json.NewEncoder(w).Encode(line); err != nil {
		return fmt.Errorf("export viewing key: %w", err)
	}
	return nil
}
