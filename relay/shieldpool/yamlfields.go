package shieldpool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gagliardetto/solana-go"
	"go.yaml.in/yaml/v3"
)

// profileChecker reads or validates a profile and collects every fault. A fault names the key's
// path and the length or kind of its value, never the value.
type profileChecker struct{ faults []error }

func (r *profileChecker) fault(path string, n *yaml.Node, format string, args ...any) {
	where := path
	if where == "" {
		where = "profile"
	}
	if n != nil && n.Line > 0 {
		where += fmt.Sprintf(" (line %d)", n.Line)
	}
	r.faults = append(r.faults, fmt.Errorf("%s: %w", where, fmt.Errorf(format, args...)))
}

// yamlKind describes a refused value: it returns the kind or the length, never the content.
func yamlKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return fmt.Sprintf("%d keys with values", len(n.Content)/2)
	case yaml.SequenceNode:
		return fmt.Sprintf("a list of %d", len(n.Content))
	case yaml.AliasNode:
		return "an alias, which is not followed"
	}
	if n.Tag == "!!null" || n.Value == "" {
		return "nothing"
	}
	return fmt.Sprintf("%d characters", len(n.Value))
}

// yamlField reads the value of the key at path.
type yamlField func(path string, n *yaml.Node)

// mapping reads keys and values. Keys that are not in fields, and repeated keys, are
// faults.
func (r *profileChecker) mapping(path string, n *yaml.Node, fields map[string]yamlField) {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	if n.Kind != yaml.MappingNode {
		r.fault(path, n, "expected keys and values (%s), received %s", strings.Join(names, ", "), yamlKind(n))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, known := fields[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !known:
			r.fault(path, key, "a key of %d characters is not known: expected one of %s", len(key.Value), strings.Join(names, ", "))
		case seen[key.Value]:
			r.fault(joinPath(path, key.Value), key, "the key is repeated: expected it once")
		default:
			read(joinPath(path, key.Value), value)
		}
		seen[key.Value] = true
	}
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// list reads a list of lo to hi items.
func (r *profileChecker) list(path string, n *yaml.Node, lo, hi int, item yamlField) {
	if n.Kind != yaml.SequenceNode || len(n.Content) < lo || len(n.Content) > hi {
		r.fault(path, n, "expected a list of %d to %d, received %s", lo, hi, yamlKind(n))
		return
	}
	for i, value := range n.Content {
		item(fmt.Sprintf("%s[%d]", path, i), value)
	}
}

// text reads a text of 1 to most bytes.
func (r *profileChecker) text(path string, n *yaml.Node, most int) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Tag == "!!binary" || n.Value == "" || len(n.Value) > most {
		r.fault(path, n, "expected a text of 1 to %d characters, received %s", most, yamlKind(n))
		return "", false
	}
	return n.Value, true
}

// oneOf reads a text that is in a list.
func oneOf[T ~string](r *profileChecker, to *T, all []T) yamlField {
	return func(path string, n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.Tag != "!!null" && slices.Contains(all, T(n.Value)) {
			*to = T(n.Value)
			return
		}
		names := make([]string, len(all))
		for i, name := range all {
			names[i] = string(name)
		}
		r.fault(path, n, "expected one of %s, received %s", strings.Join(names, ", "), yamlKind(n))
	}
}

// number reads a whole number from lo to hi, in decimal.
func number[T ~uint8 | ~uint64 | ~int](r *profileChecker, to *T, lo, hi uint64) yamlField {
	return func(path string, n *yaml.Node) {
		v, err := strconv.ParseUint(n.Value, 10, 64)
		if n.Kind != yaml.ScalarNode || err != nil || v < lo || v > hi {
			received := yamlKind(n)
			if n.Kind == yaml.ScalarNode && err == nil {
				received = strconv.FormatUint(v, 10)
			}
			r.fault(path, n, "expected a whole number from %d to %d, received %s", lo, hi, received)
			return
		}
		*to = T(v)
	}
}

func (r *profileChecker) boolean(to *bool) yamlField {
	return func(path string, n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
			r.fault(path, n, "expected true or false, received %s", yamlKind(n))
			return
		}
		*to = n.Value == "true"
	}
}

func (r *profileChecker) address(to *solana.PublicKey) yamlField {
	return func(path string, n *yaml.Node) {
		key, err := solana.PublicKeyFromBase58(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || key.IsZero() {
			r.fault(path, n, "expected an address, 32 bytes in base58, received %s", yamlKind(n))
			return
		}
		*to = key
	}
}
