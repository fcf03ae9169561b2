package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Helm is the helm command with a release of the chart.
type Helm struct {
	// Program is the command's path, Chart the chart's folder.
	Program, Chart string
	// Kubeconfig leads to the cluster.
	Kubeconfig string
	// Namespace and Name are the release's.
	Namespace, Name string
	// Folder takes the values' file and what helm printed.
	Folder string
}

// patience is what a release gets to become ready.
const patience = "5m"

// Install installs the chart and waits until the operator is ready, and gives
// the notes that its user reads.
func (h *Helm) Install(ctx context.Context, values map[string]any) (notes string, err error) {
	return h.deploy(ctx, "install", values)
}

// Upgrade changes the release's values.
func (h *Helm) Upgrade(ctx context.Context, values map[string]any) (notes string, err error) {
	return h.deploy(ctx, "upgrade", values)
}

func (h *Helm) deploy(ctx context.Context, verb string, values map[string]any) (string, error) {
	text, err := yaml.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("encode the chart's values: %w", err)
	}
	file := filepath.Join(h.Folder, "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", fmt.Errorf("write the chart's values: %w", err)
	}
	return h.run(ctx, verb, h.Name, h.Chart, "--values", file, "--wait", "--timeout", patience)
}

// Uninstall takes the release away.
func (h *Helm) Uninstall(ctx context.Context) (said string, err error) {
	return h.run(ctx, "uninstall", h.Name, "--wait", "--timeout", patience)
}

// Clear takes away what an earlier run may have left; that there is nothing is no
// error.
func (h *Helm) Clear(ctx context.Context) error {
	_, err := h.run(ctx, "uninstall", h.Name, "--wait", "--ignore-not-found", "--timeout", patience)
	return err
}

func (h *Helm) run(ctx context.Context, args ...string) (string, error) {
	args = append(args, "--namespace", h.Namespace, "--kubeconfig", h.Kubeconfig)
	command := exec.CommandContext(ctx, h.Program, args...)
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("helm %s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return string(out), nil
}
