package httpapi

import (
	"errors"
	"io"
	"net/http"

	"github.com/relaypool/relaypool/relay/refusal"
)

// readBody reads a JSON body of bounded size.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := checkMediaType(r.Header); err != nil {
		return nil, err
	}
	// The reader stops at the limit, so the length of a longer body is not known.
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refusal.New(refusal.BodyTooLarge, "the body is larger than %d bytes, the most that this relay reads: send less", MaxBody)
	case err != nil:
		// The cause is left out: a network error contains the client's address.
		return nil, refusal.New(refusal.InvalidRequest, "the body broke off after %d bytes: send the whole of it", len(raw))
	}
	return raw, nil
}
