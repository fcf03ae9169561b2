//go:build e2e

package e2e

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var (
	only  = flag.String("only", "", "`scenarios` to run, separated by commas, in addition to the required ones: "+names())
	helm  = flag.String("helm", "helm", "helm `program`")
	seed  = flag.Uint64("seed", 1, "`number` that decides what clients do")
	keep  = flag.Bool("keep", false, "leave everything on the cluster after a failure")
	from  = flag.String("from", "", "`folder` with a checkout of an earlier release, which is installed first, and upgraded to this one by the scenario upgrade")
	build = flag.Bool("build", true, "build the images first, by make images e2e-images")
)

// TestE2E runs the scenarios in their order and ends at the first failure.
func TestE2E(t *testing.T) {
	t.Chdir(filepath.Join("..", "..")) // the repository's root, as for a user
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	chosen, err := choose(*only)
	ok(t, err)
	if *from != "" && *only != "" && !slices.Contains(strings.Split(*only, ","), "upgrade") {
		t.Fatal("-from needs the scenario upgrade, or all that follows would test the earlier release")
	}
	s := connect(ctx, t, os.Getenv("KUBECONFIG"), os.Getenv("LOAD_IMAGE"))
	s.helm, s.seed, s.from = *helm, *seed, *from
	s.prepareImages(t, *build)
	s.clear(t)
	s.watch(t)
	defer func() {
		s.ctx = context.WithoutCancel(ctx) // clear the cluster after an interrupted run, too
		if s.traffic != nil {
			s.traffic.abandon()
		}
		s.stopWatch()
		for _, f := range s.figures {
			t.Log(f)
		}
		if t.Failed() && *keep {
			t.Logf("left everything on the cluster: namespaces %s and %s", namespace, operatorNamespace)
			return
		}
		s.clear(t)
	}()
	for _, scenario := range scenarios() {
		if !t.Run(scenario.name, func(t *testing.T) {
			if !chosen(scenario) {
				t.Skip("not one of -only")
			}
			s.run(t, scenario)
		}) {
			return
		}
	}
}
