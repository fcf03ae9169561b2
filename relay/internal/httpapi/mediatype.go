package httpapi

import (
	"mime"
	"net/http"
	"strings"

	"github.com/relaypool/relaypool/relay/refusal"
)

// checkMediaType accepts JSON in UTF-8, and a body without a media type, because
// simple clients send none.
func checkMediaType(h http.Header) error {
	const longest = 256
	for _, name := range []string{"Content-Type", "Content-Encoding"} {
		if n := len(h.Get(name)); n > longest {
			return refusal.New(refusal.UnsupportedMediaType, "%s has %d characters: expected application/json, uncompressed", name, n)
		}
	}
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return refusal.New(refusal.UnsupportedMediaType, "the body has a Content-Encoding: expected none; send it uncompressed")
	}
	value := h.Get("Content-Type")
	if value == "" {
		return nil
	}
	media, params, err := mime.ParseMediaType(value)
	if err != nil || media != "application/json" {
		return refusal.New(refusal.UnsupportedMediaType, "the body's Content-Type is not application/json")
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return refusal.New(refusal.UnsupportedMediaType, "the body has another charset: expected utf-8")
	}
	return nil
}
