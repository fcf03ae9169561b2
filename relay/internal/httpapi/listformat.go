package httpapi

import (
	"net/http"
	"strconv"
	"strings"
)

// format is how an answer's leaves are written: as JSON, as JSON that is compressed, or as the 32
// bytes of each.
type format string

const (
	plainJSON format = "json"
	zstdJSON  format = "zstd"
	gzipJSON  format = "gzip"
	rawLeaves format = "raw"

	binaryType = "application/octet-stream"
)

// formatFor chooses the format that a client prefers. Of what it likes equally, JSON comes before
// binary leaves, and zstd before gzip before none. What has to be named is named, so that
// a client that accepts anything gets JSON without compression.
func formatFor(h http.Header) format {
	accept := strings.Join(h.Values("Accept"), ",")
	if q := quality(accept, binaryType); q > max(quality(accept, "application/json"), quality(accept, "application/*"), quality(accept, "*/*")) {
		return rawLeaves
	}
	accept = strings.Join(h.Values("Accept-Encoding"), ",")
	best, of := plainJSON, quality(accept, "identity")
	for _, f := range []format{gzipJSON, zstdJSON} {
		if q := quality(accept, string(f)); q > 0 && q >= of {
			best, of = f, q
		}
	}
	return best
}

// quality returns the weight of a value in an Accept header; 0 when it is not named.
func quality(header, value string) float64 {
	for candidate := range strings.SplitSeq(header, ",") {
		name, parameters, _ := strings.Cut(candidate, ";")
		if !strings.EqualFold(strings.TrimSpace(name), value) {
			continue
		}
		for parameter := range strings.SplitSeq(parameters, ";") {
			if q, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(parameter)), "q="); ok {
				weight, _ := strconv.ParseFloat(q, 64) // 0 when malformed: the value is not used
				return weight
			}
		}
		return 1
	}
	return 0
}

func (f format) setHeader(h http.Header) {
	h.Set("Content-Type", "application/json")
	switch f {
	case zstdJSON, gzipJSON:
		h.Set("Content-Encoding", string(f))
	case rawLeaves:
		h.Set("Content-Type", binaryType)
	case plainJSON:
	}
}
