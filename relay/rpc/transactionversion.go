package rpc

import (
	"regexp"
	"strconv"
)

// unsupportedVersion finds the version in Agave's refusal to return a transaction.
var unsupportedVersion = regexp.MustCompile(`^Transaction version \((\d{1,3})\)`)

// learnVersion raises the version that the endpoint is asked for to the one that the endpoint
// refused to return.
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
