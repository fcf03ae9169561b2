package feepayer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/keyfile"
)

// ReadKeys reads keys from files and folders in the given order, each key in a format that Parse
// accepts. A folder's files are sorted by name. Every file of a folder must be a key,
// except files whose names begin with a dot, which belong to a mounted Kubernetes Secret.
// Subfolders are skipped. It is an error when no key is found. It is also an error when two files
// hold the same key, because the relay would count that payer's money twice. Errors name files,
// never content.
func ReadKeys(paths []string) ([]*Key, error) {
	var keys []*Key
	fileOf := map[solana.PublicKey]string{}
	for _, path := range paths {
		files, err := keyFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			key, err := ReadFile(file)
			if err != nil {
				return nil, err
			}
			if other, ok := fileOf[key.PublicKey()]; ok {
				return nil, fmt.Errorf("fee payer key files %s and %s hold the same key, that of %s: give each key once", other, file, key.PublicKey())
			}
			fileOf[key.PublicKey()] = file
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("no fee payer key was given: expected at least one file, or a folder of files; `relay keygen` makes a key file")
	}
	return keys, nil
}

// keyFiles returns path itself or, when path is a folder, its files.
func keyFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read fee payer key: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read folder of fee payer keys: %w", err)
	}
	var files []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		file := filepath.Join(path, entry.Name())
		// The files of a mounted Secret are symbolic links: os.Stat follows them, entry.Info
		// does not.
		info, err := os.Stat(file)
		if err != nil {
			return nil, fmt.Errorf("read fee payer key: %w", err)
		}
		if info.Mode().IsRegular() {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %s holds no fee payer key: expected one file per key", path)
	}
	return files, nil
}

// Parse decodes a key as Solana's tools write it: a JSON array of 64 numbers, or base58 of
// 64 bytes. The private half comes first, then the public half, which must belong to it.
// Errors hold lengths, never content.
func Parse(content []byte) (*Key, error) {
	private, err := keyfile.Parse(content)
	if err != nil {
		return nil, err
	}
	return newKey(private), nil
}

// ReadFile reads a key from a file, in either form that Parse accepts.
func ReadFile(path string) (*Key, error) {
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, fmt.Errorf("read fee payer key: %w", err)
	}
	key, err := Parse(content)
	if err != nil {
		return nil, fmt.Errorf("read fee payer key %s: %w", path, err)
	}
	return key, nil
}
