// Package canary finds parts of known secrets in text, in any encoding that may contain
// them: hexadecimal, base58, base64, or bytes printed as numbers.
//
// Each encoded secret is cut into windows of a fixed length, which are the keys of a set. A
// search looks up every part of the text that has this length. It finds the first 16
// characters of an encoded secret, and any 31 characters from its middle, because 31
// characters contain a whole window.
package canary

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mr-tron/base58"
)

// window is the number of characters that have to match.
const window = 16

// Set is the set of windows, each with the name of its secret. Fill it with Add, then
// search; it is safe for concurrent searches.
type Set struct{ windows map[string]string }

// New makes an empty set.
func New() *Set { return &Set{windows: make(map[string]string)} }

// Add adds a secret under a name, such as nullifier. It omits secrets without content (all
// bytes equal) and those of less than 12 bytes: their encodings occur everywhere.
func (s *Set) Add(name string, secret []byte) {
	const minLength = 12
	if len(secret) < minLength || strings.Count(string(secret), string(secret[:1])) == len(secret) {
		return
	}
	s.add(name+" in hexadecimal", hex.EncodeToString(secret))
	s.add(name+" in hexadecimal", strings.ToUpper(hex.EncodeToString(secret)))
	s.add(name+" in base58", base58.Encode(secret))
	// Inside a longer value a secret can start at any of the three offsets of a base64 group.
	for shift := range 3 {
		part := secret[shift : shift+(len(secret)-shift)/3*3]
		s.add(name+" in base64", base64.StdEncoding.EncodeToString(part))
		s.add(name+" in base64", base64.URLEncoding.EncodeToString(part))
	}
	numbers := fmt.Sprintf("%v", secret)
	s.add(name+" as numbers", numbers[1:])
	s.add(name+" as numbers", strings.ReplaceAll(numbers[1:], " ", ","))
	s.add(name+" as numbers", strings.ReplaceAll(numbers[1:], " ", ", "))
}

func (s *Set) add(name, text string) {
	for at := 0; at+window <= len(text); at += window {
		s.windows[text[at:at+window]] = name
	}
}

// Hit is a line that contains a window.
type Hit struct {
	// Line counts from 1.
	Line int
	// Name is the name of the window's secret.
	Name string
}

// Search reads a text to its end. It returns each line that contains a part of a secret,
// once for each name, and the number of bytes read.
func (s *Set) Search(text io.Reader) (hits []Hit, read int64, err error) {
	lines := bufio.NewReader(text)
	for number := 1; ; number++ {
		line, err := lines.ReadString('\n')
		read += int64(len(line))
		for _, name := range s.line(line) {
			hits = append(hits, Hit{Line: number, Name: name})
		}
		switch {
		case errors.Is(err, io.EOF):
			return hits, read, nil
		case err != nil:
			return hits, read, fmt.Errorf("read text to search: %w", err)
		}
	}
}

func (s *Set) line(line string) (names []string) {
	for at := 0; at+window <= len(line); at++ {
		if name, hit := s.windows[line[at:at+window]]; hit && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
