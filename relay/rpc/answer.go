package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/relaypool/relaypool/relay/onchain"
)

// maxResponse bounds an answer in bytes; the largest blocks stay well below it.
const maxResponse = 64 << 20

// decoder reads a result while it arrives. An error other than *onchain.Unavailable means that
// the result does not have the form that the method returns.
type decoder func(*jsontext.Decoder) error

// lenient accepts invalid UTF-8, which programs may log, and does not search for duplicate names.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// decoders keeps the buffers of answers up to maxPooled bytes.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

const maxPooled = 1 << 20

// boundedBody fails with errTooLong after maxResponse bytes. err is the transport's error, if a
// read failed.
type boundedBody struct {
	from io.Reader
	read int64
	err  error
}

var errTooLong = errors.New("answer is too long")

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.read > maxResponse {
		return 0, errTooLong
	}
	n, err := b.from.Read(p)
	b.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// undecodable returns the error for a result that does not have the form that the method returns.
// It omits the decoder's error, which may repeat the content.
func undecodable(method string, size int64) error {
	return &onchain.Unavailable{Method: method, Kind: onchain.KindBadResponse, Detail: fmt.Sprintf("result of %d bytes is not what the method answers", size)}
}

// decode reads an answer. It accepts a JSON-RPC error with any HTTP status below 500 except 429,
// because providers answer a refused call with status 400. It accepts a result only with status
// 200.
func (c *Client) decode(method string, status int, body *boundedBody, result decoder) error {
	switch {
	case status == http.StatusTooManyRequests:
		return &onchain.Unavailable{Method: method, Kind: onchain.KindRateLimited, Detail: "HTTP 429"}
	case status >= http.StatusInternalServerError:
		return &onchain.Unavailable{Method: method, Kind: onchain.KindServerError, Detail: fmt.Sprintf("HTTP %d", status)}
	case status != http.StatusOK:
		result = (*jsontext.Decoder).SkipValue
	}
	d := decoders.Get().(*jsontext.Decoder) //nolint:forcetypeassert // the pool has nothing else
	d.Reset(body, lenient)
	a, err := readAnswer(d, result)
	if body.read <= maxPooled {
		d.Reset(http.NoBody) // no pooled decoder refers to a connection
		decoders.Put(d)
	}
	var u *onchain.Unavailable
	switch {
	case errors.Is(err, errTooLong):
		return &onchain.Unavailable{Method: method, Kind: onchain.KindBadResponse, Detail: fmt.Sprintf("answer is above %d bytes", maxResponse)}
	case err == nil && a.fault != nil:
		return c.fault(method, a.fault)
	case status != http.StatusOK:
		return &onchain.Unavailable{Method: method, Kind: onchain.KindRejected, Detail: fmt.Sprintf("HTTP %d: check the RPC URL and its credentials", status)}
	case err != nil || !a.hasResult:
		return &onchain.Unavailable{Method: method, Kind: onchain.KindBadResponse, Detail: fmt.Sprintf("answer of %d bytes is not JSON-RPC: expected a result or an error", body.read)}
	case errors.As(a.resultErr, &u):
		return u
	case a.resultErr != nil:
		return undecodable(method, body.read)
	}
	return nil
}

// rpcAnswer is a JSON-RPC answer whose result has been passed to its decoder.
type rpcAnswer struct {
	fault     *rpcFault
	hasResult bool
	resultErr error // the decoder's error
}

func readAnswer(d *jsontext.Decoder, result decoder) (a rpcAnswer, err error) {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return a, errors.Join(err, errors.New("no object"))
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return a, err
		}
		switch name.String() {
		case "result":
			a.hasResult = true
			depth := d.StackDepth()
			if a.resultErr = result(d); a.resultErr != nil {
				// After a syntax error the whole answer is invalid. After any other error, the rest
				// of the answer is not needed, and it is not read if the decoder stopped inside the
				// result.
				var syntax *jsontext.SyntacticError
				if errors.As(a.resultErr, &syntax) || errors.Is(a.resultErr, errTooLong) || errors.Is(a.resultErr, io.ErrUnexpectedEOF) {
					return a, a.resultErr
				}
				if d.StackDepth() != depth {
					return a, nil
				}
			}
		case "error":
			if err := json.UnmarshalDecode(d, &a.fault); err != nil {
				return a, err
			}
		default:
			if err := d.SkipValue(); err != nil {
				return a, err
			}
		}
	}
	if _, err := d.ReadToken(); err != nil { // the object's end
		return a, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return a, errors.Join(err, errors.New("more than one value"))
	}
	return a, nil
}

func isNull(raw []byte) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }
