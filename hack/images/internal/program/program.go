// Package program builds the programs of the images, statically and so that the
// same commit gives the same bytes in any folder, and reads from what was built
// which commit that was.
package program

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// Platform is what a program is built for, such as linux and arm64.
type Platform struct{ OS, Architecture string }

// String gives the usual form, linux/arm64.
func (p Platform) String() string { return p.OS + "/" + p.Architecture }

// ParsePlatform reads linux/amd64 or linux/arm64, which are those that images
// are made for.
func ParsePlatform(text string) (Platform, error) {
	switch text {
	case "linux/amd64", "linux/arm64":
		system, architecture, _ := strings.Cut(text, "/")
		return Platform{system, architecture}, nil
	}
	return Platform{}, fmt.Errorf("platform %q: want linux/amd64 or linux/arm64", text)
}

// Options say what to build. All are required.
type Options struct {
	// Module is the folder of the module, Package one of its main packages, such
	// as ./relay/cmd/relay.
	Module, Package string
	Platform        Platform
	// File is the program to write.
	File string
}

// Program is a built program.
type Program struct {
	File string
	// Info is what the Go toolchain says of it: modules and version control.
	Info *debug.BuildInfo
}

// Build builds a program without C, without the folder's name in it and without
// symbol tables, with the toolchain that the module names.
func Build(ctx context.Context, o Options) (*Program, error) {
	if o.Module == "" || o.Package == "" || o.Platform == (Platform{}) || o.File == "" {
		return nil, errors.New("build a program: module, package, platform and file are all required")
	}
	file, err := filepath.Abs(o.File)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", o.Package, err)
	}
	toolchain, err := toolchain(ctx, o.Module)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", o.Package, err)
	}
	// What the user's own environment says must not change the bytes. Flags are given
	// as such rather than by an empty GOFLAGS, behind which stands that of `go env -w`.
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=auto", "-buildmode=exe", "-mod=readonly", "-tags=",
		"-ldflags=-s -w", "-o", file, o.Package)
	build.Dir, build.Env = o.Module, o.environment(toolchain)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s for %s: %w\n%s", o.Package, o.Platform, err, out)
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("build %s: read what was built: %w", o.Package, err)
	}
	return &Program{File: file, Info: info}, nil
}

// environment is what builds take of the user's own, and what they take instead.
func (o Options) environment(toolchain string) []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOOS="+o.Platform.OS, "GOARCH="+o.Platform.Architecture,
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off", "GOTOOLCHAIN="+toolchain)
}

// toolchain is the one that the module's go.mod names: a newer one on this
// machine would make other bytes.
func toolchain(ctx context.Context, module string) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.GoVersion}}")
	list.Dir = module
	list.Env = append(os.Environ(), "GOWORK=off")
	var complaint bytes.Buffer
	list.Stderr = &complaint
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("read the module's version of Go: %w: %s", err, bytes.TrimSpace(complaint.Bytes()))
	}
	return "go" + strings.TrimSpace(string(out)), nil
}
