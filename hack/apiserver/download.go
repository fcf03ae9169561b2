package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// releasesIndex lists the releases of etcd and kube-apiserver for tests; it is
	// setup-envtest's own.
	releasesIndex = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"
	// reachTimeout bounds the question whether there is a way to it, downloadTimeout
	// all that follows.
	reachTimeout    = 10 * time.Second
	downloadTimeout = 5 * time.Minute
)

// downloaded has setup-envtest fetch etcd and kube-apiserver below dir and returns
// the folder of both. They are of the pinned minor version.
func downloaded(ctx context.Context, index, dir string) (string, error) {
	if err := reached(ctx, index); err != nil {
		return "", err
	}
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	minor := strings.TrimPrefix(kubernetesVersion[:strings.LastIndex(kubernetesVersion, ".")], "v")
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile=hack/tools/setup-envtest/go.mod", "setup-envtest",
		"use", minor+".x", "--index", index, "--bin-dir", filepath.Join(dir, "envtest"), "--print", "path")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("setup-envtest: %w: %s", err, lastLines(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("setup-envtest: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// reached is an error unless the address answers.
func reached(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, address, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s, expected 200", address, answer.Status)
	}
	return nil
}
