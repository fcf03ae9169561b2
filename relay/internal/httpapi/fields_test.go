package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/openapi/spec"
)

// textField is a text field of a request.
type textField struct {
	// operation is the operation in the OpenAPI document, such as "POST /transact".
	operation string
	// in is query, header, path or body.
	in, name string
	// longest is the document's maxLength; 0 without one.
	longest uint64
}

func (f textField) String() string { return f.operation + " " + f.in + " " + f.name }

// textFields lists the text fields of all routes in the document.
func textFields(t testing.TB) (fields []textField) {
	t.Helper()
	doc, err := spec.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			name := method + " " + path
			for _, p := range operation.Parameters {
				fields = append(fields, texts(name, p.Value.In, p.Value.Name, p.Value.Schema)...)
			}
			if operation.RequestBody != nil {
				body := operation.RequestBody.Value.Content.Get("application/json").Schema
				for member, schema := range members(body) {
					fields = append(fields, texts(name, "body", member, schema)...)
				}
			}
		}
	}
	slices.SortFunc(fields, func(a, b textField) int { return strings.Compare(a.String(), b.String()) })
	if len(fields) < 20 {
		t.Fatalf("the document has %d text fields, want at least 20", len(fields))
	}
	return fields
}

func members(s *openapi3.SchemaRef) map[string]*openapi3.SchemaRef {
	all := map[string]*openapi3.SchemaRef{}
	for _, part := range s.Value.AllOf {
		maps.Copy(all, members(part))
	}
	maps.Copy(all, s.Value.Properties)
	return all
}

// texts lists the text fields in a value.
func texts(operation, in, name string, s *openapi3.SchemaRef) (fields []textField) {
	switch {
	case s.Value.Type.Is("string"):
		field := textField{operation: operation, in: in, name: name}
		if s.Value.MaxLength != nil {
			field.longest = *s.Value.MaxLength
		}
		return []textField{field}
	case s.Value.Type.Is("array"):
		return texts(operation, in, name+"[]", s.Value.Items)
	}
	for _, part := range slices.Concat(s.Value.AllOf, s.Value.OneOf, s.Value.AnyOf) {
		fields = append(fields, texts(operation, in, name, part)...)
	}
	return fields
}

// request makes a well-formed request, except that the field has the given length.
func (f textField) request(length int) *http.Request {
	text := strings.Repeat("1", length)
	method, path, _ := strings.Cut(f.operation, " ")
	switch f.in {
	case "path":
		return httptest.NewRequest(method, strings.Replace(path, "{"+f.name+"}", text, 1), nil)
	case "query":
		return httptest.NewRequest(method, path+"?"+url.Values{f.name: {text}}.Encode(), nil)
	}
	var body string
	change := func(map[string]any) {}
	if f.in == "body" {
		change = with(f.name, text)
		if entries, ok := strings.CutSuffix(f.name, "[]"); ok {
			change = with(entries, []string{text})
		}
	}
	switch path {
	case "/viewing-key/register":
		body = registerBody(change)
	case "/transact_swap":
		body = transactBody(with("output_mint", "m"), with("recipient_ata", "a"), with("min_output_amount", "1"), change)
	default:
		body = transactBody(change)
	}
	r := post(path, body)
	if method == http.MethodGet {
		r = get(path)
	}
	if f.in == "header" {
		r.Header.Set(f.name, text)
	}
	return r
}

// ignoredHeaders are headers that are ignored when they are too long.
var ignoredHeaders = []string{"Prefer", "If-None-Match"}

// newCountingFixture makes an API whose domains count the requests that reach them.
func newCountingFixture(t testing.TB) (f *fixture, reached *int) {
	reached = new(int)
	d := publishedLeaves(1)
	d.submit = func(context.Context, submission.Request) (*submission.Submission, error) {
		*reached++
		return completed(), nil
	}
	d.register = func(viewingkey.Registration) (string, error) { *reached++; return hex32, nil }
	d.get = func(context.Context, uuid.UUID) (*submission.Submission, error) { *reached++; return completed(), nil }
	return newFixture(t, d, enableSwaps), reached
}

// TestOverlongFieldsAreRefused: the document states the longest valid length of
// each text of each route. A longer text is refused before any code whose time grows
// with its length.
func TestOverlongFieldsAreRefused(t *testing.T) {
	t.Parallel()
	const most = 12_000 // within the limits of the body and of the headers
	for _, field := range textFields(t) {
		t.Run(field.String(), func(t *testing.T) {
			t.Parallel()
			if field.longest == 0 {
				t.Fatal("the field has no maxLength in the document")
			}
			for _, length := range []int{int(field.longest) + 1, most} {
				f, reached := newCountingFixture(t)
				resp, body := f.do(t, field.request(length))
				if slices.Contains(ignoredHeaders, field.name) {
					if resp.StatusCode != http.StatusOK || resp.Header.Get("Preference-Applied") != "" {
						t.Errorf("%d characters are answered %d, want them ignored: %s", length, resp.StatusCode, body)
					}
					continue
				}
				if resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusUnauthorized || *reached > 0 {
					t.Errorf("%d characters are answered %d and reach %d domains, want a refusal before any domain: %s", length, resp.StatusCode, *reached, body)
				}
				if field.in == "body" && !strings.Contains(string(body), fmt.Sprintf("%d", length)) {
					t.Errorf("the refusal does not name the length, %d: %s", length, body)
				}
			}
		})
	}
}

// TestLongestFieldsAreAccepted: a text of exactly the maximum length is valid.
func TestLongestFieldsAreAccepted(t *testing.T) {
	t.Parallel()
	for _, field := range textFields(t) {
		if field.in != "body" || field.name == "min_output_amount" {
			continue // these have their own formats, which other tests check
		}
		t.Run(field.String(), func(t *testing.T) {
			t.Parallel()
			f, reached := newCountingFixture(t)
			resp, body := f.do(t, field.request(int(field.longest)))
			if field.name == "proof_bytes" || field.name == "public_inputs" {
				// A valid text of this length ends in padding, which this text lacks.
				// It must not be refused for its length.
				if text := object(t, body); text["code"] != nil && !strings.Contains(fmt.Sprint(text["message"]), "at most") {
					return
				}
			}
			if *reached != 1 {
				t.Errorf("%d characters are answered %d, want them to reach the domain: %s", field.longest, resp.StatusCode, body)
			}
		})
	}
}

func BenchmarkRefusalOfALongField(b *testing.B) {
	for _, field := range textFields(b) {
		b.Run(field.String(), func(b *testing.B) {
			f, _ := newCountingFixture(b)
			for b.Loop() {
				f.handler.ServeHTTP(httptest.NewRecorder(), field.request(12_000))
			}
		})
	}
}

// TestFieldRequestsAreValidJSON: the bodies that these tests send are valid JSON.
func TestFieldRequestsAreValidJSON(t *testing.T) {
	t.Parallel()
	for _, field := range textFields(t) {
		if r := field.request(1); r.Method == http.MethodPost {
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Errorf("%s: %v", field, err)
			}
		}
	}
}
