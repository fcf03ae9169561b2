package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// goCommand runs the go command in a module for a platform. It overrides the user's settings
// that would change the result. The Makefile chooses the toolchain.
func goCommand(ctx context.Context, module string, platform *v1.Platform, args ...string) (string, error) {
	environment := []string{"CGO_ENABLED=0", "GOOS=" + platform.OS, "GOARCH=" + platform.Architecture, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off"}
	return output(ctx, module, environment, "go", args...)
}

// compile builds a main package of a module without cgo, the folder's name and symbols.
// It passes every setting as a flag: an empty GOFLAGS would not override `go env -w`.
func (s *source) compile(ctx context.Context, module, pkg, tags string, platform *v1.Platform) ([]byte, error) {
	scratch, err := os.MkdirTemp("", "relaypool-images-")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(scratch, "program")
	_, failed := goCommand(ctx, module, platform, "build", "-trimpath", "-buildvcs=auto", "-buildmode=exe", "-mod=readonly", "-tags="+tags, "-ldflags=-s -w", "-o", file, pkg)
	program, err := os.ReadFile(file)
	return program, errors.Join(failed, err, os.RemoveAll(scratch))
}
