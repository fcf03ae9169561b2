package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

// relayPools are RelayPools by their names, which have the form that the resource's
// own rules ask for.
func (w *writer) relayPools() (object, error) {
	pool, err := w.relayPool()
	return object{
		"type": "object", "additionalProperties": false,
		"patternProperties": object{"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$": pool},
	}, err
}

// relayPool is one of them. Its spec has the fields, types and forms of
// the resource; the rules between fields are the API server's alone.
func (w *writer) relayPool() (object, error) {
	if _, done := w.definitions["RelayPoolSpec"]; !done {
		spec, err := specOf(w.crd)
		if err != nil {
			return nil, err
		}
		w.definitions["RelayPoolSpec"] = convert(spec)
		text := object{"type": "object", "additionalProperties": object{"type": "string"}}
		described := func(s object, doc string) object {
			s = maps.Clone(s)
			s["description"] = doc
			return s
		}
		w.definitions["RelayPool"] = object{
			"type": "object", "additionalProperties": false, "required": []string{"spec"},
			"properties": object{
				"namespace": object{
					"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
					"description": "Namespace of the RelayPool, which has to exist. That of the release when missing.",
				},
				"labels":      described(labels(), "Labels of the RelayPool."),
				"annotations": described(text, "Annotations of the RelayPool."),
				"spec":        object{"$ref": "#/definitions/RelayPoolSpec"},
			},
		}
	}
	return object{"$ref": "#/definitions/RelayPool"}, nil
}

// specOf finds the schema of spec in a definition of one version.
func specOf(crd []byte) (object, error) {
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema struct {
						Properties map[string]object `json:"properties"`
					} `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(crd, &definition); err != nil {
		return nil, fmt.Errorf("read the definition: %w", err)
	}
	if len(definition.Spec.Versions) != 1 {
		return nil, fmt.Errorf("the definition has %d versions: the schema of values knows one", len(definition.Spec.Versions))
	}
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	if spec == nil {
		return nil, errors.New("the definition has no spec")
	}
	return spec, nil
}

// convert makes a JSON schema of one of Kubernetes: the same but for what only
// Kubernetes knows, and with unknown fields refused.
func convert(in object) object {
	out := object{}
	for _, key := range []string{
		"type", "enum", "pattern", "format", "required", "minimum", "maximum", "minLength", "maxLength",
		"minItems", "maxItems", "minProperties", "maxProperties",
	} {
		if value, ok := in[key]; ok {
			out[key] = value
		}
	}
	if doc, ok := in["description"].(string); ok {
		out["description"] = sentence(doc)
	}
	if either, _ := in["x-kubernetes-int-or-string"].(bool); either {
		out["type"] = []string{"integer", "string"}
	}
	if items, ok := in["items"].(object); ok {
		out["items"] = convert(items)
	}
	if additional, ok := in["additionalProperties"].(object); ok {
		out["additionalProperties"] = convert(additional)
	}
	if properties, ok := in["properties"].(object); ok {
		converted := object{}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			property, _ := properties[name].(object)
			converted[name] = convert(property)
		}
		out["properties"] = converted
		if open, _ := in["x-kubernetes-preserve-unknown-fields"].(bool); !open && out["additionalProperties"] == nil {
			out["additionalProperties"] = false
		}
	}
	return out
}
