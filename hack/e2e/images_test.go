package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// images are the images of the suite, by their references. nextRelay is the relay's image
// under another name, which a fleet treats as the next release.
type images struct {
	operator, relay, nextRelay, postgres, chain, gate, vault, traefik, keda, kedaAdapter string
	prometheus, prometheusOperator, prometheusReloader                                   string
	// earlierOperator and earlierRelay are of the release to upgrade from, if there is one.
	earlierOperator, earlierRelay string
}

// nextFolder is the folder of the next release's archive.
const nextFolder = "bin/images/next"

// makeArguments returns the arguments of each make that builds images: for this machine's
// architecture, which the suite's own images always have, and for a cluster on this
// machine. They replace our own ARGS, which the environment would pass on.
func makeArguments(from string) [][]string {
	platform := "PLATFORMS=linux/" + runtime.GOARCH
	all := [][]string{
		{"images", "e2e-images", platform, "ARGS="},
		{"images", platform, "REGISTRY=ghcr.io/relaypool/next", "ARGS=-only relay -out " + nextFolder},
	}
	if from != "" {
		all = append(all, []string{"-C", from, "images", platform, "REGISTRY=ghcr.io/relaypool/earlier", "ARGS="})
	}
	return all
}

// prepareImages builds the images and loads them onto the cluster's nodes.
func (s *suite) prepareImages(t *testing.T, build bool) {
	t.Helper()
	if build {
		for _, arguments := range makeArguments(s.from) {
			ok(t, run(s.ctx, "make", arguments...))
		}
		s.log(t, "images built")
	}
	var err error
	s.images, err = loadImages(s.ctx, s.loadImage, ".", s.from)
	ok(t, err)
	s.log(t, "images loaded: %+v", s.images)
}

// loadImages makes every image known to the nodes, by a shell command that gets an
// archive's path as its last argument, and returns their references.
func loadImages(ctx context.Context, command, root, from string) (out images, err error) {
	folders := map[string]map[string]*string{
		filepath.Join(root, "bin/images"): {"operator": &out.operator, "relay": &out.relay},
		filepath.Join(root, "bin/images/e2e"): {"postgres": &out.postgres, "localnet": &out.chain, "gate": &out.gate, "vault": &out.vault, "traefik": &out.traefik, "keda": &out.keda, "keda-adapter": &out.kedaAdapter,
			"prometheus-server": &out.prometheus, "prometheus-operator": &out.prometheusOperator, "prometheus-reloader": &out.prometheusReloader},
		filepath.Join(root, nextFolder): {"relay": &out.nextRelay},
	}
	if from != "" {
		folders[filepath.Join(from, "bin/images")] = map[string]*string{"operator": &out.earlierOperator, "relay": &out.earlierRelay}
	}
	for folder, wanted := range folders {
		// Each line has an image's digest, reference and platform.
		list, err := os.ReadFile(filepath.Join(folder, "digests.txt"))
		if err != nil {
			return out, fmt.Errorf("read which images there are: %w", err)
		}
		for line := range strings.Lines(string(list)) {
			for name, into := range wanted {
				if reference := strings.Fields(line)[1]; strings.Contains(reference, "/"+name+":") {
					*into = reference
				}
			}
		}
		for name, into := range wanted {
			if *into == "" {
				return out, fmt.Errorf("%s has no image %s: build it with make e2e, without -build=false", folder, name)
			}
			// A shell, because the user's command may have arguments and quotes.
			if err := run(ctx, "sh", "-c", command+` "$0"`, filepath.Join(folder, name+".tar")); err != nil {
				return out, fmt.Errorf("load %s by LOAD_IMAGE: %w", name, err)
			}
		}
	}
	return out, nil
}

// chartImage returns the chart's values of an image.
func chartImage(reference string) map[string]any {
	registry, name, _ := strings.Cut(reference, "/")
	repository, tag, _ := strings.Cut(name, ":")
	return map[string]any{"registry": registry, "repository": repository, "tag": tag}
}

// runHelm runs helm on the suite's release.
func (s *suite) runHelm(t *testing.T, verb string, args ...string) {
	t.Helper()
	s.runHelmIn(t, operatorNamespace, verb, args...)
}

// runHelmIn runs helm for the release in a namespace. Releases have names of their own, because the chart
// names objects of the whole cluster after them.
func (s *suite) runHelmIn(t *testing.T, in, verb string, args ...string) {
	t.Helper()
	release := releaseName
	if in != operatorNamespace {
		release = in
	}
	args = append([]string{verb, release, "--namespace", in, "--kubeconfig", s.kubeconfig, "--wait", "--timeout", "5m"}, args...)
	ok(t, run(s.ctx, s.helm, args...))
}

// deploy installs or upgrades the chart, and returns when the operator is ready.
func (s *suite) deploy(t *testing.T, verb string) {
	t.Helper()
	s.deployIn(t, operatorNamespace, verb, s.values)
}

func (s *suite) deployIn(t *testing.T, in, verb string, values map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(values)
	ok(t, err)
	file := filepath.Join(folder, "values-"+in+".yaml")
	ok(t, os.WriteFile(file, text, 0o600))
	s.runHelmIn(t, in, verb, s.chart, "--values", file)
}

// run runs a program; its output is in the error.
func run(ctx context.Context, program string, args ...string) error {
	if out, err := exec.CommandContext(ctx, program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
