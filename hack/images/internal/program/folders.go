package program

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// Linked is a module that a program has code of, with the folders on this machine
// of which that is.
type Linked struct {
	// Path and Version are the module's; the version of the main module is empty.
	Path, Version string
	// Root is the module's own folder, Packages are those of its packages.
	Root     string
	Packages []string
}

// Folders gives the modules that Build links for the same options, the main module
// included, by their paths, and the folder of the Go toolchain.
func Folders(ctx context.Context, o Options) (modules []Linked, goroot string, err error) {
	toolchain, err := toolchain(ctx, o.Module)
	if err != nil {
		return nil, "", fmt.Errorf("list what %s is linked from: %w", o.Package, err)
	}
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env = o.Module, o.environment(toolchain)
		var complaint bytes.Buffer
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("list what %s is linked from: go %s: %w: %s", o.Package, args[0], err, bytes.TrimSpace(complaint.Bytes()))
		}
		return out, nil
	}
	root, err := run("env", "GOROOT")
	if err != nil {
		return nil, "", err
	}
	out, err := run("list", "-deps", "-mod=readonly", "-tags=",
		`-f={{with .Module}}{{.Path}}{{"\t"}}{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{"\t"}}{{.Dir}}{{"\t"}}{{$.Dir}}{{end}}`, o.Package)
	if err != nil {
		return nil, "", err
	}
	found := map[string]*Linked{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 4 { // of the standard library, which is in no module
			continue
		}
		m := found[fields[0]]
		if m == nil {
			m = &Linked{Path: fields[0], Version: fields[1], Root: fields[2]}
			found[m.Path] = m
		}
		m.Packages = append(m.Packages, fields[3])
	}
	for _, m := range found {
		modules = append(modules, *m)
	}
	slices.SortFunc(modules, func(a, b Linked) int { return strings.Compare(a.Path, b.Path) })
	return modules, strings.TrimSpace(string(root)), nil
}
