package config

import (
	"crypto/sha256"
	"strings"

	"github.com/relaypool/relaypool/relay/commandline"
)

// minAPIKey and maxAPIKey bound the length of an API key, in characters. A shorter key
// could be guessed.
const minAPIKey, maxAPIKey = 16, 256

// apiKeys returns the hashes of the API keys in the file. Without a file there are none.
func (s Serve) apiKeys() (keys [][sha256.Size]byte, err error) {
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
		key := strings.TrimSpace(line)
		if key == "" || strings.HasPrefix(key, "#") {
			continue
		}
		if len(key) < minAPIKey || len(key) > maxAPIKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, commandline.Problem(flag, "line %d: expected a key of %d to %d visible ASCII characters without spaces, received %d characters", number, minAPIKey, maxAPIKey, len(key))
		}
		keys = append(keys, sha256.Sum256([]byte(key)))
	}
	if len(keys) == 0 {
		return nil, commandline.Problem(flag, "the file has no key: write a key on a line, or leave the setting out to serve everybody")
	}
	return keys, nil
}
