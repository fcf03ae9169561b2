package apply

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	value, err := decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value.(map[string]any)
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		wanted, live, owned string
		want                []string
	}{
		"every wanted field is live and owned": {
			`{"kind":"X","metadata":{"name":"a","labels":{"l":"1"}},"spec":{"n":2}}`,
			`{"kind":"X","metadata":{"name":"a","uid":"u","labels":{"l":"1","m":"2"}},"spec":{"n":2,"d":"default"},"status":{}}`,
			`{"f:metadata":{"f:labels":{"f:l":{}}},"f:spec":{"f:n":{}}}`, nil},
		"a value differs": {
			`{"spec":{"n":2}}`, `{"spec":{"n":3}}`, `{"f:spec":{"f:n":{}}}`, []string{"f:spec f:n"}},
		"a value is right, but we do not own it": {
			`{"spec":{"n":2,"m":1}}`, `{"spec":{"n":2,"m":1}}`, `{"f:spec":{"f:m":{}}}`, []string{"f:spec f:n"}},
		"a field is owned and no longer wanted": {
			`{"spec":{"m":1}}`, `{"spec":{"n":2,"m":1}}`, `{"f:spec":{"f:n":{},"f:m":{}}}`, []string{"f:spec f:n"}},
		"an atomic list differs in its order": {
			`{"spec":{"l":[1,2]}}`, `{"spec":{"l":[2,1]}}`, `{"f:spec":{"f:l":{}}}`, []string{"f:spec f:l"}},
		"a live atomic map has an extra key": {
			`{"spec":{"s":{"a":"1"}}}`, `{"spec":{"s":{"a":"1","b":"2"}}}`, `{"f:spec":{"f:s":{}}}`, []string{"f:spec f:s"}},
		"an associative list is in another order, with an element of another owner": {
			`{"spec":{"l":[{"name":"a","v":1},{"name":"b","v":2}]}}`,
			`{"spec":{"l":[{"name":"c"},{"name":"b","v":2},{"name":"a","v":1}]}}`,
			`{"f:spec":{"f:l":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:v":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:v":{}}}}}`, nil},
		"an element lost a field": {
			`{"spec":{"l":[{"name":"a","v":1}]}}`, `{"spec":{"l":[{"name":"a"}]}}`,
			`{"f:spec":{"f:l":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`, []string{`f:spec f:l k:{"name":"a"} f:v`}},
		"an element is removed, and we no longer own it": {
			`{"spec":{"l":[{"name":"a"},{"name":"b"}]}}`, `{"spec":{"l":[{"name":"a"}]}}`,
			`{"f:spec":{"f:l":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`, []string{"f:spec f:l"}},
		"an element is no longer wanted": {
			`{"spec":{"l":[{"name":"a"}]}}`, `{"spec":{"l":[{"name":"a"},{"name":"b"}]}}`,
			`{"f:spec":{"f:l":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}}`,
			[]string{`f:spec f:l k:{"name":"b"}`}},
		"a key of an element is the API server's default": {
			`{"spec":{"ports":[{"port":80}]}}`, `{"spec":{"ports":[{"port":80,"protocol":"TCP"}]}}`,
			`{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`, nil},
		"a key that was left out is ambiguous": {
			`{"spec":{"ports":[{"port":80},{"port":80,"protocol":"UDP"}]}}`,
			`{"spec":{"ports":[{"port":80,"protocol":"TCP"},{"port":80,"protocol":"UDP"}]}}`,
			`{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}}}}}`,
			[]string{"f:spec f:ports", `f:spec f:ports k:{"port":80,"protocol":"UDP"}`}},
		"a set has every wanted element": {
			`{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"finalizers":["b","a"]}}`,
			`{"f:metadata":{"f:finalizers":{".":{},"v:\"a\"":{}}}}`, nil},
		"a set lacks a wanted element": {
			`{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"finalizers":["b"]}}`,
			`{"f:metadata":{"f:finalizers":{".":{},"v:\"a\"":{}}}}`, []string{`f:metadata f:finalizers v:"a"`}},
		"nothing was ever applied": {
			`{"spec":{"n":2}}`, `{"spec":{"n":2}}`, `{}`, []string{"f:spec"}},
		"a map became something else": {
			`{"spec":{"n":{"a":1}}}`, `{"spec":{"n":"x"}}`, `{"f:spec":{"f:n":{"f:a":{}}}}`, []string{"f:spec f:n"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owned, err := parseFields(metav1.NewFieldsV1(c.owned))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range differences(object(t, c.wanted), object(t, c.live), owned) {
				got = append(got, strings.Join(p, " "))
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnedFieldsAreOfTheSameAPIVersion(t *testing.T) {
	t.Parallel()
	entry := func(manager, version, subresource string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, APIVersion: version, Subresource: subresource, Operation: operation,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:n":{}}}`)}
	}
	cases := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"we applied it":                       {[]metav1.ManagedFieldsEntry{entry("me", "v1", "", "Apply")}, true},
		"another manager applied it":          {[]metav1.ManagedFieldsEntry{entry("you", "v1", "", "Apply")}, false},
		"we updated it":                       {[]metav1.ManagedFieldsEntry{entry("me", "v1", "", "Update")}, false},
		"we applied its status":               {[]metav1.ManagedFieldsEntry{entry("me", "v1", "status", "Apply")}, false},
		"we applied it in an earlier version": {[]metav1.ManagedFieldsEntry{entry("me", "v1beta1", "", "Apply")}, false},
		"we applied it in two versions": {
			[]metav1.ManagedFieldsEntry{entry("me", "v1", "", "Apply"), entry("me", "v1beta1", "", "Apply")}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, got, err := ownedFields(c.entries, "me", "v1")
			if err != nil || got != c.want {
				t.Errorf("owned %v, error %v; want owned %v", got, err, c.want)
			}
		})
	}
}

func TestARefusalHasNoFieldValue(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ field, message, want string }{
		"a text":              {"spec.a", `Invalid value: "secret: with \"colon": must be short`, "spec.a: Invalid value: must be short"},
		"a number":            {"spec.a", "Invalid value: 70000: must be less", "spec.a: Invalid value: must be less"},
		"an object":           {"spec.a", `Invalid value: {"url":"http://u:p@h: x"}: field is immutable`, "spec.a: Invalid value: field is immutable"},
		"a list":              {"spec.a", `Too many: ["x","y"]: must have at most 1 items`, "spec.a: Too many: must have at most 1 items"},
		"a text, no detail":   {"spec.a", `Duplicate value: "secret"`, "spec.a: Duplicate value"},
		"an unclosed text":    {"spec.a", `Invalid value: "secret`, "spec.a: Invalid value"},
		"an unsupported text": {"spec.a", `Unsupported value: "secret": supported values: "A", "B"`, `spec.a: Unsupported value: supported values: "A", "B"`},
		"no value":            {"spec.a", "Required value: name or generateName is required", "spec.a: Required value: name or generateName is required"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := causeMessage(metav1.StatusCause{Field: c.field, Message: c.message}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := bounded(strings.Repeat("ä", 600)); len(got) > maxRefusal || !strings.HasSuffix(got, " …") {
		t.Errorf("a long message is %d bytes", len(got))
	}
}
