// Package httpapitest checks a relay's answers against relay/openapi.yaml, for the
// tests of every package that sends requests to a relay.
package httpapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/relaypool/relaypool/relay/openapi/spec"
	"github.com/relaypool/relaypool/relay/refusal"
)

// Validate fails the test unless the document allows the status, headers and body of the answer
// to req. An error's status must also be the one that belongs to its code. Validate returns the
// body, which can still be read from resp too.
func Validate(t testing.TB, req *http.Request, resp *http.Response) []byte {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read the answer's body: %v", err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Errorf("close the answer's body: %v", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err := check(req, resp, body); err != nil {
		t.Errorf("%s %s answered %d, which relay/openapi.yaml does not allow: %v\nbody: %.2000s", req.Method, req.URL.Path, resp.StatusCode, err, body)
	}
	return body
}

// document is the OpenAPI document, read once for all tests of a process.
var document = sync.OnceValues(func() (*parsedDocument, error) {
	doc, err := spec.GetSpec()
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, fmt.Errorf("route the document: %w", err)
	}
	return &parsedDocument{router: router, envelope: doc.Components.Schemas["Error"].Value}, nil
})

type parsedDocument struct {
	router   routers.Router
	envelope *openapi3.Schema
}

func check(req *http.Request, resp *http.Response, body []byte) error {
	doc, err := document()
	if err != nil {
		return err
	}
	if resp.Header.Get("X-Request-Id") == "" {
		return errors.New("it has no X-Request-Id")
	}
	route, params, err := findRoute(doc.router, req)
	switch {
	case err != nil:
		if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
			return fmt.Errorf("the document has no such route: %w", err)
		}
		if err := doc.checkEnvelope(body); err != nil {
			return err
		}
	case req.Method == http.MethodHead:
		if len(body) > 0 {
			return errors.New("an answer to HEAD has a body")
		}
		return nil
	default:
		if err := checkDocumented(req, resp, body, route, params); err != nil {
			return err
		}
	}
	if resp.StatusCode == http.StatusNotModified {
		if len(body) > 0 {
			return errors.New("an answer of 304 has a body")
		}
		return nil
	}
	return checkCode(resp.StatusCode, body)
}

// findRoute finds the operation of a request; HEAD has the operation of GET.
func findRoute(router routers.Router, req *http.Request) (*routers.Route, map[string]string, error) {
	if req.Method == http.MethodHead {
		req = req.Clone(req.Context())
		req.Method = http.MethodGet
	}
	return router.FindRoute(req)
}

func checkDocumented(req *http.Request, resp *http.Response, body []byte, route *routers.Route, params map[string]string) error {
	return openapi3filter.ValidateResponse(req.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route},
		Status:                 resp.StatusCode,
		Header:                 resp.Header,
		Body:                   io.NopCloser(bytes.NewReader(body)),
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
}

func (p *parsedDocument) checkEnvelope(body []byte) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	return p.envelope.VisitJSON(v)
}

// checkCode checks that an error's status belongs to its code. An answer of GET /health
// that reports down is not an error and has no code.
func checkCode(status int, body []byte) error {
	var envelope struct {
		Error any          `json:"error"`
		Code  refusal.Code `json:"code"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	if envelope.Error != true {
		return nil
	}
	if want := envelope.Code.HTTPStatus(); status != want {
		return fmt.Errorf("code %s belongs to status %d", envelope.Code, want)
	}
	return nil
}
