package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

// valuesSchema returns values.schema.json, with which helm rejects invalid values before it
// contacts a cluster.
func valuesSchema(values, definitions, crd []byte) ([]byte, error) {
	var document kyaml.Node
	if err := kyaml.Unmarshal(values, &document); err != nil {
		return nil, fmt.Errorf("read values.yaml: %w", err)
	}
	properties, err := propertiesOf(document.Content[0])
	if err != nil {
		return nil, err
	}
	// Helm passes this value to every chart that is a dependency of another one.
	properties["global"] = object{"type": "object", "description": "Values that a chart around this one shares. None is used here."}
	var defined object
	if err := yaml.UnmarshalStrict(definitions, &defined); err != nil {
		return nil, fmt.Errorf("read the schema's definitions: %w", err)
	}
	if defined["RelayPoolSpec"], err = specSchema(crd); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(object{
		"$schema":              "http://json-schema.org/draft-07/schema#",
		"$comment":             "Generated from values.yaml by go generate ./... in hack/chart. Do not edit.",
		"title":                "Values of the chart relaypool",
		"type":                 "object",
		"additionalProperties": false,
		"properties":           properties,
		"definitions":          defined,
	})
	return out.Bytes(), err
}

// propertiesOf returns the schemas of a group's values, by their keys.
func propertiesOf(group *kyaml.Node) (object, error) {
	properties := object{}
	for i := 0; i < len(group.Content); i += 2 {
		key, value := group.Content[i], group.Content[i+1]
		schema, doc, err := annotation(key.HeadComment)
		switch {
		case err != nil:
			return nil, fmt.Errorf("values.yaml, line %d: %s: %w", key.Line, key.Value, err)
		case schema == nil && value.Kind == kyaml.MappingNode:
			inside, err := propertiesOf(value)
			if err != nil {
				return nil, err
			}
			schema = object{"type": "object", "additionalProperties": false, "properties": inside}
		case schema == nil:
			return nil, fmt.Errorf("values.yaml, line %d: %s has no comment with @schema", key.Line, key.Value)
		case schema["$ref"] != nil: // this draft ignores all keywords next to $ref
			schema = object{"allOf": []any{schema}}
		}
		if doc != "" {
			schema["description"] = doc
		}
		properties[key.Value] = schema
	}
	return properties, nil
}

// annotation reads a value's schema and documentation from the comment above it. The head of
// values.yaml describes the format.
func annotation(comment string) (schema object, doc string, err error) {
	for line := range strings.Lines(comment) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "#"))
		if text, ok := strings.CutPrefix(line, "@schema "); ok {
			err = yaml.UnmarshalStrict([]byte(text), &schema)
		} else if text, ok := strings.CutPrefix(line, "-- "); ok {
			doc = text
		} else if doc != "" {
			doc += " " + line
		}
	}
	return schema, doc, err
}

// specSchema returns the schema of a RelayPool's spec: its fields, types and formats. Only
// the API server checks the rules between fields.
func specSchema(file []byte) (*apiextensionsv1.JSONSchemaProps, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(file, &crd); err != nil {
		return nil, fmt.Errorf("read the definition: %w", err)
	}
	if len(crd.Spec.Versions) != 1 {
		return nil, fmt.Errorf("the definition has %d versions: want 1 for the schema of values", len(crd.Spec.Versions))
	}
	spec, ok := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	if !ok {
		return nil, fmt.Errorf("the definition has no spec")
	}
	makeStrict(&spec)
	return &spec, nil
}

// makeStrict turns a schema of Kubernetes into a JSON schema: it removes the extensions of
// Kubernetes, and refuses unknown fields.
func makeStrict(s *apiextensionsv1.JSONSchemaProps) {
	s.Description = firstSentence(s.Description)
	s.Default, s.XValidations, s.XIntOrString = nil, nil, false
	s.XListType, s.XListMapKeys, s.XMapType = nil, nil, nil
	for name, property := range s.Properties {
		makeStrict(&property)
		s.Properties[name] = property
	}
	switch {
	case s.Items != nil:
		makeStrict(s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		makeStrict(s.AdditionalProperties.Schema)
	case s.Properties != nil && s.AdditionalProperties == nil:
		s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: false}
	}
}

// firstSentence is the first sentence of a description.
func firstSentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for i := 0; i+2 < len(text); i++ {
		// A full stop that is not followed by a capital letter ends an abbreviation, such as e.g.
		if text[i] == '.' && text[i+1] == ' ' && unicode.IsUpper(rune(text[i+2])) {
			return text[:i+1]
		}
	}
	return text
}
