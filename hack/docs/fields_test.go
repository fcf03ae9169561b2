package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Texts and examples may still have the old name of a renamed field.
func TestFieldsOfARelayPoolExist(t *testing.T) {
	t.Parallel()
	resource, found := definition(t), 0
	for page, text := range documents(t) {
		for _, name := range inline(text, `(?:^|[ {])\.?((?:spec|status)\.[A-Za-z\[\].]*[A-Za-z])`) {
			found++
			if !hasField(resource, strings.Split(strings.ReplaceAll(name, "[]", ""), ".")) {
				t.Errorf("%s names %s, which a RelayPool does not have", page, name)
			}
		}
		for _, example := range yamlBlocks(text) {
			var content map[string]any
			if err := yaml.UnmarshalStrict([]byte(example), &content); err != nil {
				continue // a list, or YAML of another program
			}
			if content["kind"] != "RelayPool" && (content["spec"] == nil || content["kind"] != nil) {
				continue
			}
			found++
			for _, unknown := range unknownFields("spec", content["spec"], resource.Properties["spec"]) {
				t.Errorf("%s has an example with %s, which a RelayPool does not have", page, unknown)
			}
		}
	}
	if found == 0 {
		t.Error("no document names a field: nothing was checked")
	}
}

func TestValuesOfTheChartExist(t *testing.T) {
	t.Parallel()
	var values map[string]any
	if err := yaml.Unmarshal([]byte(read(t, "charts/relaypool/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	found := 0
	for page, text := range documents(t) {
		for _, name := range inline(text, "^([a-z][A-Za-z]*(?:\\.[a-z][A-Za-z]*)+)(?:: .*)?$") {
			steps := strings.Split(name, ".")
			if values[steps[0]] == nil || slices.Contains([]string{".json", ".yaml", ".md"}, filepath.Ext(name)) || hasField(definition(t), append([]string{"spec"}, steps...)) {
				continue
			}
			found++
			at := any(values)
			for _, step := range steps {
				below, _ := at.(map[string]any)
				at = below[step]
				if _, ok := below[step]; !ok {
					t.Errorf("%s names %s, which is not a value of the chart", page, name)
					break
				}
			}
		}
	}
	if found == 0 {
		t.Error("no document names a value: nothing was checked")
	}
}

// inline returns the texts of the pattern's group at its matches in a document's inline code.
func inline(text, pattern string) []string {
	var out []string
	find := regexp.MustCompile(pattern)
	for _, span := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		for _, m := range find.FindAllStringSubmatch(span[1], -1) {
			out = append(out, m[1])
		}
	}
	return out
}

var fenced = regexp.MustCompile("(?s)```.*?```")

func yamlBlocks(text string) []string {
	var out []string
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

func hasField(p apiextensionsv1.JSONSchemaProps, steps []string) bool {
	for _, step := range steps {
		if p.Items != nil {
			p = *p.Items.Schema
		}
		below, ok := p.Properties[step]
		if !ok {
			return len(p.Properties) == 0 && p.AdditionalProperties != nil
		}
		p = below
	}
	return true
}

// unknownFields returns the paths in an example that a schema does not have.
func unknownFields(path string, content any, p apiextensionsv1.JSONSchemaProps) []string {
	switch content := content.(type) {
	case map[string]any:
		if len(p.Properties) == 0 {
			return nil // a map, or a type of Kubernetes
		}
		var out []string
		for name, value := range content {
			below, ok := p.Properties[name]
			if !ok {
				out = append(out, path+"."+name)
				continue
			}
			out = append(out, unknownFields(path+"."+name, value, below)...)
		}
		slices.Sort(out)
		return out
	case []any:
		var out []string
		for _, entry := range content {
			out = append(out, unknownFields(path+"[]", entry, *p.Items.Schema)...)
		}
		return out
	}
	return nil
}

func TestUnknownFields(t *testing.T) {
	t.Parallel()
	resource := definition(t)
	tests := map[string]struct {
		example string
		want    []string
	}{
		"existing fields":                        {"{pool: {rootHistorySize: 100}, solana: {endpoints: [{name: a}]}, template: {labels: {a: b}}}", nil},
		"an unknown field":                       {"{pool: {ring: 100}}", []string{"spec.pool.ring"}},
		"an unknown field in an entry of a list": {"{solana: {endpoints: [{name: a, socket: b}]}}", []string{"spec.solana.endpoints[].socket"}},
		"a misspelt field":                       {"{feePayer: {}}", []string{"spec.feePayer"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var content any
			if err := yaml.Unmarshal([]byte(tt.example), &content); err != nil {
				t.Fatal(err)
			}
			if got := unknownFields("spec", content, resource.Properties["spec"]); !slices.Equal(got, tt.want) {
				t.Errorf("unknownFields = %q, want %q", got, tt.want)
			}
		})
	}
}
