package build_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// exemptFields lists the fields of the spec that change no object, each with its use. A
// field that neither changes an object nor is listed would have no effect, and the person
// who sets it would get no message.
func exemptFields() map[string]string {
	return map[string]string{
		"Replicas":                           "the reconciler sets Input.Replicas from this field or the live count",
		"Paused":                             "the reconciler applies nothing while it is set",
		"Pool.Gate":                          "the reconciler sets Input.Withheld",
		"Pool.CheckIntervalSeconds":          "only the operator uses it: the interval of its chain checks",
		"Solana.Commitment":                  "only the operator uses it: the commitment level of its chain checks",
		"FeePayers.SecretRefs[].Name":        "Input.Payers has the keys that are in use, whoever made them",
		"FeePayers.SecretRefs[].Key":         "Input.Payers has the keys that are in use, whoever made them",
		"FeePayers.Generate.Backup.Required": "only the operator uses it: the gate of the keys' funds",
		"FeePayers.Generate.Count":           "the reconciler makes the keys, and sets Input.Payers",
		"FeePayers.Rotation.Revision":        "the reconciler rotates the keys, and sets Input.Payers and a Rotation",
	}
}

func TestNoFieldOfTheSpecIsIgnored(t *testing.T) {
	t.Parallel()
	exceptions := exemptFields()
	inputs := fixtures(t)
	paths := fieldPaths(reflect.TypeFor[v1alpha1.RelayPoolSpec](), "")
	if len(paths) < 80 {
		t.Fatalf("%d fields were found, which cannot be all: %v", len(paths), paths)
	}
	for _, path := range paths {
		reached, changed := false, false
		for _, in := range inputs {
			before := everything(t, in)
			forEachChange(in.Pool, path, func(pool *v1alpha1.RelayPool) {
				reached = true
				other := in
				other.Pool = pool
				changed = changed || everything(t, other) != before
			})
		}
		reason, excepted := exceptions[path]
		switch {
		case !reached:
			t.Errorf("spec.%s: no fixture has the field or its parent: add it to a file below testdata", path)
		case changed && excepted:
			t.Errorf("spec.%s changes objects, although it is listed as exempt (%s): remove it from exemptFields", path, reason)
		case !changed && !excepted:
			t.Errorf("spec.%s changes no object: use it in an object, or add it to exemptFields", path)
		}
		delete(exceptions, path)
	}
	for path := range exceptions {
		t.Errorf("spec.%s is no field: remove it from exemptFields", path)
	}
}

// everything returns all objects that are built from an input, as JSON.
func everything(t *testing.T, in build.Input) string {
	t.Helper()
	objects := build.Objects(in)
	for _, step := range []build.Step{build.StepFund, build.StepDrain, build.StepSweep} {
		objects = append(objects, build.RotationJob(in, build.Rotation{Step: step, Revision: 1, From: in.Payers, To: in.Payers}))
	}
	content, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var ownTypes = reflect.TypeFor[v1alpha1.RelayPoolSpec]().PkgPath()

// fieldPaths lists the paths of all fields below a type. It descends into our own API types
// only: a field of another type is one path.
func fieldPaths(typ reflect.Type, path string) []string {
	switch {
	case typ.Kind() == reflect.Pointer:
		return fieldPaths(typ.Elem(), path)
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct && typ.Elem().PkgPath() == ownTypes:
		return fieldPaths(typ.Elem(), path+"[]")
	case typ.Kind() != reflect.Struct || typ.PkgPath() != ownTypes:
		return []string{path}
	}
	var list []string
	for i := range typ.NumField() {
		list = append(list, fieldPaths(typ.Field(i).Type, strings.TrimPrefix(path+"."+typ.Field(i).Name, "."))...)
	}
	return list
}

// forEachChange calls visit with a copy of the pool for each of several other values of
// the field at path. In a list it changes the first item that has the field. If the pool leaves
// out a part of the path, it makes no call.
func forEachChange(pool *v1alpha1.RelayPool, path string, visit func(*v1alpha1.RelayPool)) {
	for n := 0; ; n++ {
		other := pool.DeepCopy()
		field, ok := find(reflect.ValueOf(&other.Spec).Elem(), path)
		if !ok || !change(field, n) {
			return
		}
		visit(other)
	}
}

func find(in reflect.Value, path string) (reflect.Value, bool) {
	if in.Kind() == reflect.Pointer {
		if in.IsNil() {
			return reflect.Value{}, false
		}
		in = in.Elem()
	}
	name, rest, nested := strings.Cut(path, ".")
	name, list := strings.CutSuffix(name, "[]")
	in = in.FieldByName(name)
	switch {
	case !nested:
		return in, true
	case !list:
		return find(in, rest)
	}
	for i := range in.Len() {
		if field, ok := find(in.Index(i), rest); ok {
			return field, true
		}
	}
	return reflect.Value{}, false
}

// change sets the nth other value, and returns false when there are no more.
func change(field reflect.Value, n int) bool {
	if field.Kind() != reflect.String {
		if n == 0 {
			changeOnce(field)
		}
		return n == 0
	}
	// A field may react to certain words only, so the words of all enums are tried.
	words := []string{field.String() + "x", "", "Enabled", "Disabled", "Allow", "Refuse", "HPA", "KEDA", "Hold", "Warn", "NodePort", "Local"}
	if n < len(words) {
		field.SetString(words[n])
	}
	return n < len(words)
}

func changeOnce(field reflect.Value) {
	switch field.Kind() {
	case reflect.Bool:
		field.SetBool(!field.Bool())
	case reflect.Int32, reflect.Int64:
		field.SetInt(field.Int() + 1)
	case reflect.Slice:
		field.Set(reflect.Append(field, reflect.Zero(field.Type().Elem())))
	case reflect.Map:
		if field.IsNil() {
			field.Set(reflect.MakeMap(field.Type()))
		}
		field.SetMapIndex(reflect.ValueOf("another"), reflect.ValueOf("value"))
	case reflect.Pointer:
		changePointer(field)
	default:
		panic(fmt.Sprintf("no change is defined for fields of kind %s", field.Kind()))
	}
}

func changePointer(field reflect.Value) {
	switch elem := field.Type().Elem(); {
	case elem.Kind() == reflect.Int32 || elem.Kind() == reflect.Int64:
		next := reflect.New(elem)
		if !field.IsNil() {
			next.Elem().SetInt(field.Elem().Int() + 1)
		}
		field.Set(next)
	case field.IsNil():
		field.Set(reflect.New(elem))
	default:
		field.SetZero()
	}
}

// fieldPaths must descend into pointers, lists and structs.
func TestFieldPathsIncludeEveryKindOfField(t *testing.T) {
	t.Parallel()
	paths := fieldPaths(reflect.TypeFor[v1alpha1.RelayPoolSpec](), "")
	for _, want := range []string{
		"Image", "Paused", "Pool.Profile.ConfigMapRef.Key", "Pool.Mints[].Field", "Solana.Endpoints[].URLSecretRef.Name", "Solana.Endpoints[].Roles",
		"FeePayers.MinimumBalanceLamports", "Swap.Router.APIKeySecretRef.Key", "API.CORSOrigins", "Autoscaling.Provider",
		"NetworkPolicy.APIFrom", "NetworkPolicy.RPC[].Port", "Template.Resources", "Template.ImagePullSecrets[].Name",
	} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is not among the fields %v", want, paths)
		}
	}
}
