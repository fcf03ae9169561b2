// Package readme makes the chart's README: an introduction and every value.
package readme

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/relaypool/relaypool/hack/chart/values"
)

const generated = "<!-- Generated from values.yaml and hack/chart/introduction.md by go generate ./... in hack/chart. Do not edit. -->\n"

// Write gives the README of the chart: the introduction, whose first line is its
// title, and a table of the values for each section.
func Write(introduction []byte, tree []*values.Value) ([]byte, error) {
	title, rest, _ := bytes.Cut(introduction, []byte("\n"))
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n\n%s%s\n## Values\n", title, generated, rest)
	section := ""
	for _, v := range values.Leaves(tree) {
		if v.Section != section {
			section = v.Section
			fmt.Fprintf(&out, "\n### %s\n\n| value | default | meaning |\n| --- | --- | --- |\n", section)
		}
		row, err := row(v)
		if err != nil {
			return nil, err
		}
		out.WriteString(row)
	}
	return out.Bytes(), nil
}

func row(v *values.Value) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v.Default); err != nil {
		return "", fmt.Errorf("%s: %w", v.Name(), err)
	}
	doc := v.Doc
	if v.Enum != nil {
		given := make([]string, 0, len(v.Enum))
		for _, e := range v.Enum {
			if e != "" {
				given = append(given, "`"+e+"`")
			}
		}
		doc += " One of " + strings.Join(given, ", ") + "."
	}
	cell := func(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "|", `\|`) }
	code := func(s string) string { return "`" + cell(s) + "`" }
	return fmt.Sprintf("| %s | %s | %s |\n", code(v.Name()), code(text.String()), cell(doc)), nil
}
