package rpc

import (
	"regexp"
	"strconv"
)

// unsupportedVersion finds the version in Agave's refusal to return a transaction.
var unsupportedVersion = regexp.MustCompile(`^Transaction version \((\d{1,3})\)`)

// learnVersion finds, in the message of a refusal, the transaction version that the endpoint
// refused to return. From then on, the client asks for that version if it is the newest so far.
func (c *Client) learnVersion(message string) {
	found := unsupportedVersion.FindStringSubmatch(message)
	if found == nil {
		return
	}
	// A version has seven bits. Concurrent answers may leave the lower version stored; the next
	// refusal corrects that.
	if v, err := strconv.ParseInt(found[1], 10, 64); err == nil && v < versionBit && v > c.version.Load() {
		c.version.Store(v)
	}
}
