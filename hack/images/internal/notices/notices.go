// Package notices collects the licences of what is linked into a program, which most
// of them want to go where the program goes.
package notices

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/relaypool/relaypool/hack/images/internal/program"
)

// Text is one file of a module: a licence, or a notice that belongs to it.
type Text struct {
	// Name is the file's path in the module, slash-separated.
	Name, Content string
}

// Module is what an image has of others, and under which texts.
type Module struct {
	Path, Version string
	// Texts is empty for a module that comes without any.
	Texts []Text
}

// named tells the files that licences stand in. Those of code, such as license.go,
// are none.
var named = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|unlicense|notice|patents)([.-][a-z0-9.-]*)?$`)

var code = regexp.MustCompile(`(?i)\.(go|s|c|h|json|ya?ml)$`)

// Of reads a module's texts: those beside each package that is linked, and in the
// folders above it up to the module's own, because a module may hold copies of others.
func Of(m program.Linked) (Module, error) {
	texts := map[string]string{}
	seen := map[string]bool{}
	for _, folder := range append([]string{m.Root}, m.Packages...) {
		for ; !seen[folder]; folder = filepath.Dir(folder) {
			seen[folder] = true
			inside, err := filepath.Rel(m.Root, folder)
			if err != nil || strings.HasPrefix(inside, "..") {
				return Module{}, fmt.Errorf("read licences of %s: the folder %s is not in the module's, %s", m.Path, folder, m.Root)
			}
			if err := read(folder, inside, texts); err != nil {
				return Module{}, fmt.Errorf("read licences of %s: %w", m.Path, err)
			}
			if inside == "." {
				break
			}
		}
	}
	out := Module{Path: m.Path, Version: m.Version}
	for name, content := range texts {
		out.Texts = append(out.Texts, Text{name, content})
	}
	slices.SortFunc(out.Texts, func(a, b Text) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// read adds the texts in one folder, inside of its module.
func read(folder, inside string, texts map[string]string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !named.MatchString(entry.Name()) || code.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		texts[filepath.ToSlash(filepath.Join(inside, entry.Name()))] = string(content)
	}
	return nil
}

const (
	wide   = "================================================================================"
	narrow = "--------------------------------------------------------------------------------"
)

// Write gives the page with all texts. Modules under the very same ones stand
// together. It refuses a module without any, unless it is among those that are known
// to have none, by their paths.
func Write(heading string, modules []Module, without []string) (string, error) {
	groups := map[string][]Module{}
	var missing []error
	for _, m := range modules {
		if len(m.Texts) == 0 && !slices.Contains(without, m.Path) {
			missing = append(missing, fmt.Errorf("collect licences: %s %s has no file with its licence: find out under which it is, and say so in hack/images/internal/product", m.Path, m.Version))
		}
		key := fmt.Sprintf("%q", m.Texts)
		groups[key] = append(groups[key], m)
	}
	if len(missing) > 0 {
		return "", errors.Join(missing...)
	}
	var sorted [][]Module
	for _, g := range groups {
		slices.SortFunc(g, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
		sorted = append(sorted, g)
	}
	slices.SortFunc(sorted, func(a, b []Module) int { return strings.Compare(a[0].Path, b[0].Path) })
	var b strings.Builder
	b.WriteString(heading)
	for _, g := range sorted {
		b.WriteString("\n" + wide + "\n")
		for _, m := range g {
			b.WriteString(m.Path + " " + m.Version + "\n")
		}
		if len(g[0].Texts) == 0 {
			b.WriteString("\nIt comes without a text of its licence.\n")
		}
		for _, text := range g[0].Texts {
			b.WriteString(narrow + "\n" + text.Name + "\n\n" + strings.TrimRight(text.Content, "\n") + "\n")
		}
	}
	return b.String(), nil
}
