// Package schema makes the chart's values.schema.json: what helm refuses before it
// asks a cluster.
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/relaypool/relaypool/hack/chart/values"
)

// object is a schema.
type object = map[string]any

// Write gives the schema of the values; crd is RelayPool's definition.
func Write(tree []*values.Value, crd []byte) ([]byte, error) {
	w := &writer{definitions: object{}, crd: crd}
	properties := object{
		// Helm hands it to every chart that another one depends on.
		"global": object{"type": "object", "description": "Values that a chart around this one shares. None is used here."},
	}
	if err := w.properties(properties, tree); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"$schema":              "http://json-schema.org/draft-07/schema#",
		"$comment":             "Generated from values.yaml by go generate ./... in hack/chart. Do not edit.",
		"title":                "Values of the chart relaypool",
		"type":                 "object",
		"additionalProperties": false,
		"properties":           properties,
		"definitions":          w.definitions,
	})
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return out.Bytes(), nil
}

type writer struct {
	definitions object
	crd         []byte
}

func (w *writer) properties(into object, tree []*values.Value) error {
	for _, v := range tree {
		s, err := w.value(v)
		if err != nil {
			return fmt.Errorf("%s: %w", v.Name(), err)
		}
		if v.Doc != "" {
			s["description"] = v.Doc
		}
		into[v.Key()] = s
	}
	return nil
}

func (w *writer) value(v *values.Value) (object, error) {
	if v.Children != nil {
		properties := object{}
		if err := w.properties(properties, v.Children); err != nil {
			return nil, err
		}
		return object{"type": "object", "additionalProperties": false, "properties": properties}, nil
	}
	if v.Enum != nil {
		return object{"type": "string", "enum": v.Enum}, nil
	}
	var alternatives []any
	for _, t := range v.Types {
		s, err := w.typed(t, v)
		if err != nil {
			return nil, err
		}
		alternatives = append(alternatives, s)
	}
	if v.Nullable {
		alternatives = append(alternatives, object{"type": "null"})
	}
	if len(alternatives) == 1 {
		s, _ := alternatives[0].(object)
		if _, reference := s["$ref"]; reference {
			// Beside a reference nothing else counts in this draft.
			return object{"allOf": []any{s}}, nil
		}
		return s, nil
	}
	return object{"anyOf": alternatives}, nil
}

// typed is the schema of one type that the annotations name.
func (w *writer) typed(name string, v *values.Value) (object, error) {
	if items, ok := strings.CutPrefix(name, "[]"); ok {
		s, err := w.typed(items, v)
		return object{"type": "array", "items": s}, err
	}
	if items, ok := strings.CutPrefix(name, "map[string]"); ok {
		s, err := w.typed(items, v)
		return object{"type": "object", "additionalProperties": s}, err
	}
	switch name {
	case "string":
		s := object{"type": "string"}
		if v.Pattern != "" {
			s["pattern"] = v.Pattern
		}
		return s, nil
	case "integer":
		s := object{"type": "integer"}
		if v.Min != nil {
			s["minimum"] = *v.Min
		}
		return s, nil
	case "boolean", "object":
		return object{"type": name}, nil
	case "labels":
		return labels(), nil
	case "relaypools":
		return w.relayPools()
	default:
		return w.kubernetes(name)
	}
}

// labels are labels in addition to the chart's own, by which it finds its objects.
func labels() object {
	return object{
		"type": "object", "additionalProperties": object{"type": "string"},
		"patternProperties": object{`^(app\.kubernetes\.io|helm\.sh)/`: false},
	}
}
