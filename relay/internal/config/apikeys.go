package config

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/relaypool/relaypool/relay/commandline"
)

// minAPIKey and maxAPIKey bound the length of an API key, in characters. A shorter key
// could be guessed.
const minAPIKey, maxAPIKey = 16, 256

// maxKeyLimit is more requests a minute than one relay answers.
const maxKeyLimit = 1_000_000

// APIKey is an API key of the file.
type APIKey struct {
	// Hash is the SHA-256 hash of the key.
	Hash [sha256.Size]byte
	// Name is empty for a key without a name. PerMinute is 0 for a key without a limit of its own.
	Name      string
	PerMinute int
}

// ReadAPIKeys reads the file of API keys. Without a file there are none. The relay reads the file
// again while it runs.
func (s Serve) ReadAPIKeys() (keys []APIKey, err error) {
	const flag = "api-keys-file"
	if s.APIKeysFile == "" {
		return nil, nil
	}
	content, err := readFile(flag, s.APIKeysFile, "write a key of 16 characters or more on a line, or leave the setting out to serve everybody")
	if err != nil {
		return nil, err
	}
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		key := words[0]
		if len(key) < minAPIKey || len(key) > maxAPIKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, commandline.Problem(flag, "line %d: expected a key of %d to %d visible ASCII characters without spaces, received %d characters", number, minAPIKey, maxAPIKey, len(key))
		}
		k := APIKey{Hash: sha256.Sum256([]byte(key))}
		if err := k.readNameAndLimit(words[1:]); err != nil {
			return nil, commandline.Problem(flag, "line %d: %w", number, err)
		}
		if slices.ContainsFunc(keys, func(other APIKey) bool { return other.Hash == k.Hash }) {
			return nil, commandline.Problem(flag, "line %d: the key is on an earlier line: expected each key once", number)
		}
		if slices.ContainsFunc(keys, func(other APIKey) bool {
			return other.Name != "" && other.Name == k.Name && other.PerMinute != k.PerMinute
		}) {
			return nil, commandline.Problem(flag, "line %d: another key of the same name has another limit: expected one limit for each name", number)
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, commandline.Problem(flag, "the file has no key: write a key on a line, or leave the setting out to serve everybody")
	}
	return keys, nil
}

// readNameAndLimit reads what follows the key on its line: nothing, a name, or a name and a limit.
func (k *APIKey) readNameAndLimit(words []string) error {
	if len(words) > 2 {
		return fmt.Errorf("expected a key, perhaps its name, and perhaps a limit, received %d words", len(words)+1)
	}
	if len(words) > 0 {
		if _, err := strconv.Atoi(words[0]); err == nil || !namePattern.MatchString(words[0]) { // a number is meant as a limit
			return fmt.Errorf("name of %d characters: expected 1 to 32 lower-case letters, digits and hyphens between them, with a letter; a limit follows the name", len(words[0]))
		}
		k.Name = words[0]
	}
	if len(words) > 1 {
		var err error
		if k.PerMinute, err = strconv.Atoi(words[1]); err != nil || k.PerMinute < 1 || k.PerMinute > maxKeyLimit {
			return fmt.Errorf("limit of %d characters: expected 1 to %d requests a minute", len(words[1]), maxKeyLimit)
		}
	}
	return nil
}
