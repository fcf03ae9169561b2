package openapi_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/openapi/spec"
	"github.com/relaypool/relaypool/relay/refusal"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	if err := load(t).Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
}

func TestEmbeddedDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	embedded, err := spec.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	want, got := canonical(t, load(t)), canonical(t, embedded)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the embedded document differs from openapi.yaml (-want +got); run go generate ./relay/openapi/...\n%s", diff)
	}
}

func canonical(t *testing.T, doc *openapi3.T) any {
	t.Helper()
	raw, err := doc.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	// The generator rewrites operation ids to Go names in its copy.
	for _, path := range v.(map[string]any)["paths"].(map[string]any) {
		for _, operation := range path.(map[string]any) {
			delete(operation.(map[string]any), "operationId")
		}
	}
	return v
}

func TestCodesAndStatusesMatchTheRelay(t *testing.T) {
	t.Parallel()
	schema := load(t).Components.Schemas["ErrorCode"].Value
	want := map[string]int{}
	for _, code := range refusal.All() {
		want[string(code)] = code.HTTPStatus()
		if !openapi.ErrorCode(code).Valid() {
			t.Errorf("the generated types do not know %s", code)
		}
	}
	var listed []string
	for _, v := range schema.Enum {
		listed = append(listed, v.(string))
	}
	slices.Sort(listed)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), listed); diff != "" {
		t.Errorf("ErrorCode's enum (-refusal +document):\n%s", diff)
	}
	got := map[string]int{}
	for code, status := range schema.Extensions["x-statuses"].(map[string]any) {
		got[code] = int(status.(float64))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("x-statuses (-refusal +document):\n%s", diff)
	}
}

// TestEveryCodeIsExplained: a reader of the document finds each error code in some
// description.
func TestEveryCodeIsExplained(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range refusal.All() {
		if !bytes.Contains(raw, []byte("`"+string(code)+"`")) {
			t.Errorf("no description in openapi.yaml mentions %s", code)
		}
	}
}
