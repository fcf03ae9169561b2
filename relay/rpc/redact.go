package rpc

import (
	"net/url"
	"strings"
)

// maxMessage bounds the part of an endpoint's message that is kept, in bytes.
const maxMessage = 200

func (c *Client) message(m string) string {
	if c.silent {
		return ""
	}
	m = c.redact(m)
	if len(m) > maxMessage {
		m = strings.ToValidUTF8(m[:maxMessage], "") + "…"
	}
	return m
}

// minSecret is the length in bytes from which a part of the URL's path counts as a secret:
// providers put keys there, and shorter parts are words such as v2 or rpc.
const minSecret = 8

// redactor returns a replacer that removes the possibly secret parts of the URL from endpoints'
// messages: some providers repeat the key that they refuse.
func redactor(u *url.URL) *strings.Replacer {
	var pairs []string
	hide := func(s string, minLength int) {
		if len(s) >= minLength {
			pairs = append(pairs, s, "[redacted]")
		}
	}
	hide(u.String(), 1)
	password, _ := u.User.Password()
	hide(password, 1)
	hide(u.User.Username(), 1)
	for _, part := range strings.Split(u.Path, "/") {
		hide(part, minSecret)
	}
	for _, values := range u.Query() {
		for _, v := range values {
			hide(v, 1)
		}
	}
	return strings.NewReplacer(pairs...)
}
