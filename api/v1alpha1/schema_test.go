package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// foreignSchemas are the fields whose schema is Kubernetes' own.
var foreignSchemas = []string{
	".spec.template.resources", ".spec.template.tolerations[]", ".spec.template.affinity",
	".spec.networkPolicy.database[].namespaceSelector", ".spec.networkPolicy.database[].podSelector",
	".spec.networkPolicy.rpc[].namespaceSelector", ".spec.networkPolicy.rpc[].podSelector",
	".spec.networkPolicy.router[].namespaceSelector", ".spec.networkPolicy.router[].podSelector",
	".spec.networkPolicy.signers[].namespaceSelector", ".spec.networkPolicy.signers[].podSelector",
	".spec.networkPolicy.apiFrom[]", ".spec.networkPolicy.operationsFrom[]",
	".status.conditions[]",
}

// field is one of our fields in the CRD.
type field struct {
	path     string // .spec.solana.endpoints[].name
	schema   apiextensionsv1.JSONSchemaProps
	required bool
	item     bool // an entry of a list or map rather than a field
}

// ownFields walks the CRD, sorted by path, without metadata.
func ownFields(t *testing.T) []field {
	t.Helper()
	crds, err := apiserver.OwnCRDs()
	if err != nil {
		t.Fatal(err)
	}
	var fields []field
	var walk func(f field)
	walk = func(f field) {
		fields = append(fields, f)
		if slices.Contains(foreignSchemas, f.path) {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(f.schema.Properties)) {
			walk(field{path: f.path + "." + name, schema: f.schema.Properties[name], required: slices.Contains(f.schema.Required, name)})
		}
		if f.schema.Items != nil {
			walk(field{path: f.path + "[]", schema: *f.schema.Items.Schema, item: true})
		}
	}
	root := crds[0].Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range []string{"spec", "status"} {
		walk(field{path: "." + name, schema: root.Properties[name], required: slices.Contains(root.Required, name)})
	}
	return fields
}

// composite reports whether the field has subfields, whose documentation
// describes it.
func (f field) composite() bool { return len(f.schema.Properties) > 0 }

// kubectl explain and the reference show the descriptions.
func TestFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	for _, f := range ownFields(t) {
		if f.item || strings.HasPrefix(f.path, ".status.conditions[]") {
			continue
		}
		description := strings.Join(strings.Fields(f.schema.Description), " ")
		if description == "" {
			t.Errorf("%s has no description", f.path)
			continue
		}
		name := f.path[strings.LastIndex(f.path, ".")+1:]
		if first, _, _ := strings.Cut(description, " "); !strings.EqualFold(first, name) {
			t.Errorf("%s: the description begins with %q, expected the field's name", f.path, first)
		}
		if !strings.HasPrefix(f.path, ".spec.") || f.composite() {
			continue
		}
		checkLeaf(t, f, description)
	}
}

// checkLeaf requires what a person needs to set a field: the default, the unit,
// and an example where nothing else shows the form.
func checkLeaf(t *testing.T, f field, description string) {
	t.Helper()
	switch {
	case f.schema.Default != nil:
		var value any
		if err := json.Unmarshal(f.schema.Default.Raw, &value); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(value)
		if number, ok := value.(float64); ok {
			text = strconv.FormatFloat(number, 'f', -1, 64)
		}
		if !regexp.MustCompile(`Default: ` + regexp.QuoteMeta(text) + `[.,]`).MatchString(description) {
			t.Errorf("%s: the description does not say \"Default: %s\"", f.path, text)
		}
	case !f.required && !strings.Contains(description, "Default: "):
		t.Errorf("%s: the field is optional and its description does not say what applies without it (\"Default: \")", f.path)
	}
	shown := f.schema.Default != nil || len(f.schema.Enum) > 0 || f.schema.Type == "boolean" || slices.Contains(foreignSchemas, f.path) ||
		f.schema.Items != nil && (slices.Contains(foreignSchemas, f.path+"[]") || len(f.schema.Items.Schema.Properties) > 0)
	if !shown && !strings.Contains(description, "xample: ") {
		t.Errorf("%s: nothing shows how a value looks: add \"Example: \" to the description", f.path)
	}
	for suffix, unit := range map[string]string{
		"Seconds": "seconds", "Milliseconds": "milliseconds", "Hours": "hours", "PerMinute": "a minute", "PerSecond": "a second",
		"Lamports": "lamports", "MicroLamports": "micro-lamports",
	} {
		if strings.HasSuffix(f.path, suffix) && !strings.Contains(description, unit) {
			t.Errorf("%s: the description does not name the unit, %s", f.path, unit)
		}
	}
}

// An amount names its unit, a reference its kind, and a value of an enumeration is in
// PascalCase, like Kubernetes' own.
func TestNamesContainUnitAndKind(t *testing.T) {
	t.Parallel()
	value := regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	for _, f := range ownFields(t) {
		if slices.Contains(foreignSchemas, f.path) {
			continue
		}
		name := strings.TrimSuffix(f.path, "[]")
		if f.schema.Type == "integer" && strings.Contains(f.schema.Description, "lamports") && !strings.HasSuffix(name, "Lamports") {
			t.Errorf("%s is an amount of lamports, but its name does not end with Lamports", f.path)
		}
		properties := slices.Sorted(maps.Keys(f.schema.Properties))
		if slices.Equal(properties, []string{"key", "name"}) && !regexp.MustCompile(`(^|[a-z])(Secret|ConfigMap|secret|configMap)Refs?$`).MatchString(name[strings.LastIndex(name, ".")+1:]) {
			t.Errorf("%s is a reference, but its name does not say the kind of object", f.path)
		}
		for _, e := range f.schema.Enum {
			var text string
			if err := json.Unmarshal(e.Raw, &text); err != nil {
				t.Fatal(err)
			}
			if f.path != ".spec.pool.profile.name" && !value.MatchString(text) { // profiles have names of their own
				t.Errorf("%s: the value %q is not in PascalCase", f.path, text)
			}
		}
	}
}

// Without bounds the server cannot estimate the cost of a rule, and one object could be a
// megabyte.
func TestListsAndStringsAreBounded(t *testing.T) {
	t.Parallel()
	for _, f := range ownFields(t) {
		if !strings.HasPrefix(f.path, ".spec") || slices.Contains(foreignSchemas, f.path) {
			continue
		}
		switch s := f.schema; {
		case s.Type == "string" && s.MaxLength == nil && len(s.Enum) == 0:
			t.Errorf("%s is a string without MaxLength", f.path)
		case s.Type == "array" && s.MaxItems == nil:
			t.Errorf("%s is a list without MaxItems", f.path)
		case s.Type == "object" && s.AdditionalProperties != nil && s.MaxProperties == nil:
			t.Errorf("%s is a map without MaxProperties", f.path)
		case s.Type == "object" && s.AdditionalProperties != nil && !boundsValues(s):
			t.Errorf("%s is a map whose values have no bound: add a rule of all keys and self[k].size()", f.path)
		case s.Type == "integer" && (s.Minimum == nil || s.Maximum == nil):
			t.Errorf("%s is a number without Minimum or Maximum", f.path)
		}
	}
}

// boundsValues reports whether a rule bounds a map's values, for which there is
// no marker.
func boundsValues(s apiextensionsv1.JSONSchemaProps) bool {
	return slices.ContainsFunc(s.XValidations, func(v apiextensionsv1.ValidationRule) bool {
		return strings.Contains(v.Rule, "self[k].size() <= ")
	})
}

// bound is one limit of a field. The schema accepts the value on the limit, and refuses the
// value beyond it, with a message that names the field and contains the text.
type bound struct {
	name                 string
	atLimit, beyondLimit any
	text                 string
	limitIsInvalid       bool // another limit of the field refuses the value at the limit
}

// The server must enforce every limit. The test sets each field of the samples to its
// limits and beyond.
func TestBounds(t *testing.T) {
	t.Parallel()
	cl := newClient(t)
	namespace := apiservertest.Namespace(t)
	all := samples(t)
	for _, f := range ownFields(t) {
		if !strings.HasPrefix(f.path, ".spec.") || slices.Contains(foreignSchemas, f.path) || f.composite() {
			continue
		}
		t.Run(f.path, func(t *testing.T) {
			t.Parallel()
			sample := withField(all, f.path)
			if sample == nil {
				t.Fatal("no sample in config/samples has the field: add it to one")
			}
			for _, b := range bounds(f.schema) {
				submit := func(value any) error {
					object := sample.DeepCopy()
					object.SetNamespace(namespace)
					set(t, object, f.path, value)
					return cl.Create(t.Context(), object, client.DryRunAll)
				}
				// A rule over several fields may refuse a value on the limit. The field's own
				// schema must not.
				if err := submit(b.atLimit); err != nil && !b.limitIsInvalid && schemaRefuses(err, f.path) {
					t.Errorf("%s: the value on the limit is refused: %v", b.name, err)
				}
				if err := submit(b.beyondLimit); err == nil || !strings.Contains(err.Error(), b.text) || !strings.Contains(err.Error(), shownPath(f.path)) {
					t.Errorf("%s: the value beyond the limit gave %v; expected an error with %q that names %s", b.name, err, b.text, shownPath(f.path))
				}
			}
		})
	}
}

func bounds(s apiextensionsv1.JSONSchemaProps) []bound {
	var list []bound
	if s.Minimum != nil {
		list = append(list, bound{name: "minimum", atLimit: int64(*s.Minimum), beyondLimit: int64(*s.Minimum) - 1, text: "should be greater than or equal to " + number(*s.Minimum)})
	}
	if s.Maximum != nil {
		list = append(list, bound{name: "maximum", atLimit: int64(*s.Maximum), beyondLimit: int64(*s.Maximum) + 1, text: "should be less than or equal to " + number(*s.Maximum)})
	}
	if s.MaxLength != nil {
		long := strings.Repeat("1", int(*s.MaxLength))
		list = append(list, bound{name: "maximum length", atLimit: long, beyondLimit: long + "1", text: fmt.Sprintf("may not be more than %d", *s.MaxLength), limitIsInvalid: s.Pattern != "" || s.Format != ""})
	}
	if s.MinLength != nil && *s.MinLength == 1 {
		list = append(list, bound{name: "minimum length", atLimit: "1", beyondLimit: "", text: "should be at least 1 chars long"})
	}
	if s.Pattern != "" {
		list = append(list, bound{name: "pattern", beyondLimit: "\n", text: "should match", limitIsInvalid: true})
	}
	if len(s.Enum) > 0 {
		list = append(list, bound{name: "enum", atLimit: strings.Trim(string(s.Enum[0].Raw), `"`), beyondLimit: "neither", text: "Unsupported value"})
	}
	if s.MinItems != nil {
		list = append(list, bound{name: "minimum of entries", beyondLimit: []any{}, text: fmt.Sprintf("should have at least %d items", *s.MinItems), limitIsInvalid: true})
	}
	if s.MaxItems != nil {
		list = append(list, bound{name: "maximum of entries", beyondLimit: make([]any, *s.MaxItems+1), text: fmt.Sprintf("must have at most %d items", *s.MaxItems), limitIsInvalid: true})
	}
	if s.MaxProperties != nil {
		many := map[string]any{}
		for i := range *s.MaxProperties + 1 {
			many[fmt.Sprintf("key-%d", i)] = "value"
		}
		list = append(list, bound{name: "maximum of keys", beyondLimit: many, text: fmt.Sprintf("must have at most %d items", *s.MaxProperties), limitIsInvalid: true})
	}
	return list
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// schemaRefuses reports whether the error comes from the field's own schema,
// not from a rule over several fields.
func schemaRefuses(err error, path string) bool {
	return strings.Contains(err.Error(), shownPath(path)+": ") &&
		(strings.Contains(err.Error(), "in body") || strings.Contains(err.Error(), "Unsupported value") || strings.Contains(err.Error(), "may not be"))
}

// shownPath is the path as the server writes it, of the first entry of lists.
func shownPath(path string) string {
	return strings.TrimPrefix(strings.ReplaceAll(path, "[]", "[0]"), ".")
}

// withField returns a copy of a sample that has the field. In every list of the path, the entry
// with the field is the first.
func withField(all map[string]*unstructured.Unstructured, path string) *unstructured.Unstructured {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if sample := all[name].DeepCopy(); bringForward(sample.Object, strings.Split(strings.TrimPrefix(path, "."), ".")) {
			return sample
		}
	}
	return nil
}

// bringForward moves the entries of lists that have the field to the front, and reports whether the
// field exists.
func bringForward(value any, steps []string) bool {
	if len(steps) == 0 {
		return true
	}
	key, inList := strings.CutSuffix(steps[0], "[]")
	object, ok := value.(map[string]any)
	if !ok || object[key] == nil {
		return false
	}
	if !inList {
		return bringForward(object[key], steps[1:])
	}
	list, _ := object[key].([]any)
	for i := range list {
		if bringForward(list[i], steps[1:]) {
			list[0], list[i] = list[i], list[0]
			return true
		}
	}
	return false
}

// lookup follows the path through the first entry of each list.
func lookup(value any, path string) (any, bool) {
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
		key, inList := strings.CutSuffix(step, "[]")
		object, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = object[key]; !ok {
			return nil, false
		}
		if inList {
			list, ok := value.([]any)
			if !ok || len(list) == 0 {
				return nil, false
			}
			value = list[0]
		}
	}
	return value, true
}

// set replaces what lookup finds.
func set(t *testing.T, object *unstructured.Unstructured, path string, value any) {
	t.Helper()
	if list, ok := strings.CutSuffix(path, "[]"); ok {
		entries, _ := lookup(object.Object, list)
		entries.([]any)[0] = value
		return
	}
	at := strings.LastIndex(path, ".")
	parent, ok := lookup(object.Object, path[:at])
	if !ok {
		t.Fatalf("the sample has no %s", path[:at])
	}
	parent.(map[string]any)[path[at+1:]] = value
}
