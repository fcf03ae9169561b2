package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// fieldTree is a fieldsV1 of metadata.managedFields: the fields that a manager owns, as the API
// server recorded them. A key is f:<name> for a field, k:<json> for an element of a list, v:<json>
// for an element of a set, or "." for the node itself. The JSON after k: has the element's key
// fields and their values. The manager owns a node without children as a whole.
type fieldTree map[string]fieldTree

// ownedFields returns the fields that manager owns through server-side apply. It returns false if
// manager has applied nothing, or has applied with another version of the API.
func ownedFields(entries []metav1.ManagedFieldsEntry, manager, apiVersion string) (fieldTree, bool, error) {
	var found *metav1.ManagedFieldsEntry
	for i := range entries {
		e := &entries[i]
		if e.Manager != manager || e.Operation != metav1.ManagedFieldsOperationApply || e.Subresource != "" {
			continue
		}
		if e.APIVersion != apiVersion || found != nil {
			return nil, false, nil
		}
		found = e
	}
	if found == nil || found.FieldsV1 == nil {
		return nil, false, nil
	}
	tree, err := parseFields(found.FieldsV1)
	return tree, err == nil, err
}

func parseFields(fields *metav1.FieldsV1) (fieldTree, error) {
	var tree fieldTree
	if err := json.Unmarshal(fields.GetRawBytes(), &tree); err != nil {
		return nil, fmt.Errorf("read managed fields: %w", err)
	}
	return tree, nil
}

// path leads to a field; its steps are keys of a fieldTree.
type path []string

func (p path) child(step string) path { return append(slices.Clone(p), step) }

// has reports whether the manager owns the field, or something inside it.
func (t fieldTree) has(p path) bool {
	for _, step := range p {
		next, ok := t[step]
		if !ok {
			return false
		}
		t = next
	}
	return true
}

// differences returns the fields that would change if wanted were applied: fields whose live
// value differs, fields that are wanted but not owned, and fields that are owned but not wanted.
// If it returns none, applying would change nothing. It may also list a field by mistake, if the
// API server stores the value in another form. Applying does not change such a field.
func differences(wanted, live map[string]any, owned fieldTree) []path {
	// No manager owns these fields, so they are not compared.
	top := withoutKeys(wanted, "apiVersion", "kind")
	if metadata, ok := top["metadata"].(map[string]any); ok {
		top["metadata"] = withoutKeys(metadata, "name", "namespace", "uid", "resourceVersion")
	}
	d := &difference{}
	d.compareMaps(nil, top, live, owned)
	return d.paths
}

func withoutKeys(m map[string]any, keys ...string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if !slices.Contains(keys, k) {
			out[k] = v
		}
	}
	return out
}

// difference collects the paths of the fields that differ.
type difference struct{ paths []path }

func (d *difference) add(p path) { d.paths = append(d.paths, p) }

// compareValue compares one field. An atomic field is compared as a whole, so the code in package
// build has to set the defaults inside it (such as the apiVersion of a fieldRef). If that code left
// a default out, the default that the API server adds would look like a field to remove.
func (d *difference) compareValue(at path, wanted, live any, owned fieldTree) {
	children := len(owned)
	if _, itself := owned["."]; itself {
		children--
	}
	if children == 0 {
		if !reflect.DeepEqual(wanted, live) {
			d.add(at)
		}
		return
	}
	switch w := wanted.(type) {
	case map[string]any:
		if l, ok := live.(map[string]any); ok {
			d.compareMaps(at, w, l, owned)
			return
		}
	case []any:
		if l, ok := live.([]any); ok {
			d.compareLists(at, w, l, owned)
			return
		}
	}
	d.add(at)
}

func (d *difference) compareMaps(at path, wanted, live map[string]any, owned fieldTree) {
	for step := range owned {
		name, isField := strings.CutPrefix(step, "f:")
		if _, ok := wanted[name]; step != "." && (!isField || !ok) {
			d.add(at.child(step)) // no longer wanted
		}
	}
	for name, w := range wanted {
		step := "f:" + name
		node, ok := owned[step]
		l, exists := live[name]
		if w == (empty{}) {
			if exists {
				d.add(at.child(step))
			}
			continue
		}
		if !ok || !exists {
			d.add(at.child(step))
			continue
		}
		d.compareValue(at.child(step), w, l, node)
	}
}

func (d *difference) compareLists(at path, wanted, live []any, owned fieldTree) {
	matched := make([]bool, len(wanted))
	for step, node := range owned {
		if step == "." {
			continue
		}
		inWanted, inLive := elementIndexes(step, wanted, live)
		if inWanted < 0 || matched[inWanted] {
			d.add(at.child(step))
			continue
		}
		matched[inWanted] = true
		if inLive < 0 {
			d.add(at.child(step))
			continue
		}
		d.compareValue(at.child(step), wanted[inWanted], live[inLive], node)
	}
	if slices.Contains(matched, false) { // an element is wanted but not owned
		d.add(at)
	}
}

// elementIndexes finds the list element that step names. It returns the index of the element in
// wanted and its index in live. An index is -1 if that list does not have the element.
func elementIndexes(step string, wanted, live []any) (inWanted, inLive int) {
	if len(step) < 2 {
		return -1, -1
	}
	value, err := decode([]byte(step[2:]))
	if err != nil {
		return -1, -1
	}
	switch step[:2] {
	case "k:":
		return elementByKeys(wanted, value, true), elementByKeys(live, value, false)
	case "v:":
		same := func(e any) bool { return reflect.DeepEqual(e, value) }
		return slices.IndexFunc(wanted, same), slices.IndexFunc(live, same)
	default:
		return -1, -1
	}
}

// ownedByOthers reports whether a manager other than FieldOwner owns one of the fields. If so,
// that manager wrote the field. Writes through subresources count too, such as those of kubectl
// scale.
func ownedByOthers(entries []metav1.ManagedFieldsEntry, paths []path) bool {
	for i := range entries {
		e := &entries[i]
		if e.Manager == FieldOwner || e.FieldsV1 == nil {
			continue
		}
		tree, err := parseFields(e.FieldsV1)
		if err == nil && slices.ContainsFunc(paths, tree.has) {
			return true
		}
	}
	return false
}

// elementByKeys returns the index of the element with these keys, or -1 if none or several have
// them. With mayOmit, the element may omit a key for which the API server has a default, such as
// a port's protocol.
func elementByKeys(list []any, keys any, mayOmit bool) int {
	want, ok := keys.(map[string]any)
	if !ok {
		return -1
	}
	found := -1
	for i, e := range list {
		element, isMap := e.(map[string]any)
		if !isMap || !matchesKeys(element, want, mayOmit) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

func matchesKeys(element, keys map[string]any, mayOmit bool) bool {
	for k, v := range keys {
		got, ok := element[k]
		if !ok && mayOmit {
			continue
		}
		if !ok || !reflect.DeepEqual(got, v) {
			return false
		}
	}
	return true
}

// decode reads JSON as the API machinery does: whole numbers as int64.
func decode(raw []byte) (any, error) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("read JSON of %d bytes: %w", len(raw), err)
	}
	return convertNumbers(value), nil
}

func convertNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole
		}
		if decimal, err := v.Float64(); err == nil {
			return decimal
		}
		return v.String()
	case map[string]any:
		for k := range v {
			v[k] = convertNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = convertNumbers(v[i])
		}
	}
	return value
}

// canonical brings wanted into the form in which the API server stores a built-in kind. For
// example, the API server stores the quantity 1000m as 1, and omits a false that is the default.
// typed is an empty object of the kind.
func canonical(wanted map[string]any, typed runtime.Object) (map[string]any, error) {
	converter := runtime.DefaultUnstructuredConverter
	if err := converter.FromUnstructured(wanted, typed); err != nil {
		return nil, fmt.Errorf("convert to %T: %w", typed, err)
	}
	stored, err := converter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("convert %T to a map: %w", typed, err)
	}
	return restrict(wanted, stored), nil
}

// empty marks a wanted value that the API server does not store, such as false or an empty text,
// because the value means the same as a missing field. The manager still owns the field.
type empty struct{}

// restrict returns those fields of stored that wanted has, recursively. If stored lacks a field of
// wanted, the result has empty{} for that field.
func restrict(wanted, stored map[string]any) map[string]any {
	out := make(map[string]any, len(wanted))
	for k, w := range wanted {
		if s, ok := stored[k]; ok {
			out[k] = restrictValue(w, s)
		} else {
			out[k] = empty{}
		}
	}
	return out
}

func restrictValue(wanted, stored any) any {
	switch w := wanted.(type) {
	case map[string]any:
		if s, ok := stored.(map[string]any); ok {
			return restrict(w, s)
		}
	case []any:
		s, ok := stored.([]any)
		if !ok || len(s) != len(w) {
			return stored
		}
		out := make([]any, len(w))
		for i := range w {
			out[i] = restrictValue(w[i], s[i])
		}
		return out
	}
	return stored
}
