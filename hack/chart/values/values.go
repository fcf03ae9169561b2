// Package values reads the chart's annotated values.yaml, which is what its schema
// and its README are made from.
package values

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Value is one value of the chart, or a group of them.
type Value struct {
	// Path leads to it from the top.
	Path []string
	// Section is the part of the README that it is in.
	Section string
	// Doc says what it does, in one paragraph.
	Doc string
	// Types are what may be given, one of them; none where there is an Enum.
	Types []string
	// Enum are all that may be given.
	Enum []string
	// Pattern is the form of the string, or of each string of a list.
	Pattern string
	// Min is the least number.
	Min *int
	// Nullable says that null may be given, too.
	Nullable bool
	// Default is what values.yaml has.
	Default any
	// Children are what a group consists of, in the file's order; nil for a value.
	Children []*Value
}

// Key is the last part of the path.
func (v *Value) Key() string { return v.Path[len(v.Path)-1] }

// Name is the path as --set takes it.
func (v *Value) Name() string { return strings.Join(v.Path, ".") }

// Leaves gives the values of a tree, without the groups.
func Leaves(tree []*Value) []*Value {
	var out []*Value
	for _, v := range tree {
		if v.Children == nil {
			out = append(out, v)
		}
		out = append(out, Leaves(v.Children)...)
	}
	return out
}

var (
	keyLine = regexp.MustCompile(`^( *)([A-Za-z][A-Za-z0-9]*):(.*)$`)
	comment = regexp.MustCompile(`^ *# ?(.*)$`)
)

// Read reads a values.yaml.
func Read(file []byte) ([]*Value, error) {
	var defaults map[string]any
	if err := yaml.UnmarshalStrict(file, &defaults); err != nil {
		return nil, fmt.Errorf("read values.yaml: %w", err)
	}
	r := reader{root: &Value{}, defaults: defaults}
	r.open = []*Value{r.root}
	for i, line := range strings.Split(string(file), "\n") {
		if err := r.line(line); err != nil {
			return nil, fmt.Errorf("values.yaml, line %d: %w", i+1, err)
		}
	}
	for _, v := range Leaves(r.root.Children) {
		if v.Doc == "" {
			return nil, fmt.Errorf("values.yaml: %s has no comment that says what it does", v.Name())
		}
		if len(v.Types) == 0 && len(v.Enum) == 0 {
			return nil, fmt.Errorf("values.yaml: %s has neither +type nor +enum", v.Name())
		}
	}
	return r.root.Children, nil
}

// reader keeps what the lines so far have opened.
type reader struct {
	root     *Value
	defaults map[string]any
	section  string
	comments []string
	// open are the groups around the line, the outermost first; indent[i] is how far
	// the keys of open[i] are indented. A value of several lines is passed over.
	open   []*Value
	inside int
	within bool
}

func (r *reader) line(line string) error {
	trimmed := strings.TrimSpace(line)
	indent := len(line) - len(strings.TrimLeft(line, " "))
	if r.within && trimmed != "" && indent > r.inside {
		return nil
	}
	switch {
	case trimmed == "":
		r.comments = nil
		return nil
	case strings.HasPrefix(trimmed, "#"):
		text := comment.FindStringSubmatch(line)[1]
		if title, ok := strings.CutPrefix(text, "+section "); ok {
			r.section, r.comments = title, nil
			return nil
		}
		r.comments = append(r.comments, text)
		return nil
	}
	key := keyLine.FindStringSubmatch(line)
	if key == nil || indent%2 != 0 || indent/2 >= len(r.open) {
		return fmt.Errorf("expected a key two spaces further in than its group's, received %d characters", len(line))
	}
	return r.key(indent, key[2])
}

func (r *reader) key(indent int, name string) error {
	parent := r.open[indent/2]
	v := &Value{Path: append(slices.Clone(parent.Path), name), Section: r.section}
	var err error
	if v.Default, err = lookup(r.defaults, v.Path); err != nil {
		return err
	}
	var doc []string
	for _, c := range r.comments {
		directive, ok := strings.CutPrefix(c, "+")
		if !ok {
			doc = append(doc, strings.TrimSpace(c))
			continue
		}
		if err := v.directive(directive); err != nil {
			return err
		}
	}
	r.comments = nil
	v.Doc = strings.Join(doc, " ")
	parent.Children = append(parent.Children, v)
	r.open = r.open[:indent/2+1]
	r.inside, r.within = indent, true
	if _, group := v.Default.(map[string]any); group && len(v.Types) == 0 && len(v.Enum) == 0 {
		v.Children = []*Value{}
		r.open, r.within = append(r.open, v), false
	}
	return nil
}

func (v *Value) directive(text string) error {
	name, argument, _ := strings.Cut(text, " ")
	switch name {
	case "type":
		v.Types = strings.Split(argument, "|")
	case "enum":
		for _, e := range strings.Fields(argument) {
			v.Enum = append(v.Enum, strings.Trim(e, `"`))
		}
	case "pattern":
		if _, err := regexp.Compile(argument); err != nil {
			return fmt.Errorf("+pattern: %w", err)
		}
		v.Pattern = argument
	case "min":
		n, err := strconv.Atoi(argument)
		if err != nil {
			return fmt.Errorf("+min: %w", err)
		}
		v.Min = &n
	case "nullable":
		v.Nullable = true
	default:
		return fmt.Errorf("+%s is no directive: expected type, enum, pattern, min, nullable or section", name)
	}
	return nil
}

func lookup(in map[string]any, path []string) (any, error) {
	var at any = in
	for _, key := range path {
		group, ok := at.(map[string]any)
		if !ok {
			return nil, errors.New("a key is in no group")
		}
		if at, ok = group[key]; !ok {
			return nil, fmt.Errorf("%s is not what the file means: keys are two spaces further in than their group's", strings.Join(path, "."))
		}
	}
	return at, nil
}
