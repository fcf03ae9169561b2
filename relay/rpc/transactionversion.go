package rpc

import (
	"errors"
	"regexp"
	"strconv"

	"github.com/relaypool/relaypool/relay/onchain"
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

// anyVersion makes a call with the newest transaction version that the endpoint is known to use. If
// a block has a transaction of a newer version, the endpoint refuses the whole block and names that
// version. anyVersion then makes the call again with that version.
func (c *Client) anyVersion(call func(version int64) error) error {
	version := c.version.Load()
	err := call(version)
	var refused *onchain.RPCError
	if errors.As(err, &refused) && refused.Code == codeUnsupportedVersion {
		if newer := c.version.Load(); newer > version {
			return call(newer)
		}
	}
	return err
}
