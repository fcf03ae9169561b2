package viewingkey

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// privateKeyHeader is the first word of a private key file. It shows people what the
// file is, and lets programs refuse other files that hold 64 digits.
const privateKeyHeader = "relaypool-compliance-private-key-v1"

// EncodePrivateKey returns the content of a private key file: one line of
// header, key id and 64 hexadecimal digits. The key id identifies the key and
// detects damage.
func EncodePrivateKey(private PrivateKey) []byte {
	return fmt.Appendf(nil, "%s %s %x\n", privateKeyHeader, KeyID(private.public()), private.bytes)
}

// ParsePrivateKey is the inverse of EncodePrivateKey. Its errors show nothing of
// the content.
func ParsePrivateKey(content []byte) (PrivateKey, error) {
	fields := strings.Fields(string(content))
	if len(fields) != 3 || fields[0] != privateKeyHeader {
		return PrivateKey{}, fmt.Errorf("compliance private key: want one line %q, as `relay compliance keygen` writes it, received %d bytes of another form", privateKeyHeader+" <key id> <64 hexadecimal digits>", len(content))
	}
	var private PrivateKey
	var fault string
	if private.bytes, fault = parseHex32(fields[2]); fault != "" {
		return PrivateKey{}, fmt.Errorf("compliance private key: want 64 hexadecimal digits after the key id, received %s", fault)
	}
	if KeyID(private.public()) != fields[1] {
		return PrivateKey{}, errors.New("compliance private key: the key does not belong to the key id beside it; the file is damaged, restore it from a backup")
	}
	return private, nil
}

// WritePrivateKeyFile writes the key durably to a new file that only its owner can
// read (0600). It never overwrites a file: a lost compliance key makes everything
// sealed to it unreadable.
func WritePrivateKeyFile(path string, private PrivateKey) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write compliance private key: %w", err)
	}
	_, err = file.Write(EncodePrivateKey(private))
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		// A partly written file must not be mistaken for a key.
		return fmt.Errorf("write compliance private key: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}
