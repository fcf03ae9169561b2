package feepayer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/relaypool/relaypool/relay/keyfile"
)

// Generate makes a key from 32 bytes that it reads from random. random must be cryptographically
// secure, such as crypto/rand.Reader.
func Generate(random io.Reader) (*Key, error) {
	private, err := keyfile.Generate(random)
	if err != nil {
		return nil, err
	}
	return newKey(private), nil
}

// WriteFile writes the key as a JSON array of 64 numbers, readable by its owner
// alone. It never overwrites: an existing file is an error, because it may be
// the only copy of a key that holds money.
func (k *Key) WriteFile(path string) error {
	content := keyfile.Format(k.private())
	defer clear(content)
	f, err := os.OpenFile(filepath.Clean(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("create key file, which must not exist yet: %w", err)
	}
	_, err = f.Write(content)
	// Without Sync, a key that is funded before it is on disk can be lost with its money.
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name()) // the incomplete file created above: the next try must not find it
		return fmt.Errorf("write key file: %w", err)
	}
	return nil
}
