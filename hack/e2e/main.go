// Command e2e tests the project end to end on a real cluster: make e2e runs it,
// and docs/engineering/e2e.md says how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/release"
	"github.com/relaypool/relaypool/hack/e2e/report"
	"github.com/relaypool/relaypool/hack/e2e/suite"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
)

// errFailed says that a scenario failed; the report has which.
var errFailed = errors.New("the suite found faults: see the report above")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}

// settings are what flags and environment say.
type settings struct {
	kubeconfig, loadImage, helm, chart, out string
	only                                    []string
	seed                                    uint64
	keep, build                             bool
}

func parse(args []string, getenv func(string) string) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("e2e", flag.ContinueOnError)
	flags.StringVar(&s.kubeconfig, "kubeconfig", getenv("KUBECONFIG"), "`file` that leads to the cluster; by default that of KUBECONFIG")
	flags.StringVar(&s.loadImage, "load-image", getenv("LOAD_IMAGE"), "`command` that makes an image archive, whose path is added, known to the nodes; by default that of LOAD_IMAGE.\nkind load image-archive is one")
	flags.StringVar(&s.helm, "helm", "helm", "helm `program`")
	flags.StringVar(&s.chart, "chart", filepath.Join("charts", "relaypool"), "chart's `folder`")
	flags.StringVar(&s.out, "out", filepath.Join("bin", "e2e"), "`folder` for logs and reports")
	only := flags.String("only", "", "`scenarios` to run, with commas between them, besides those that they need: "+strings.Join(suite.Names(), ", "))
	flags.Uint64Var(&s.seed, "seed", 1, "`number` that decides what clients do")
	flags.BoolVar(&s.keep, "keep", false, "leave everything on the cluster after a failure")
	flags.BoolVar(&s.build, "build", true, "build the images first, by make images e2e-images")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if *only != "" {
		s.only = strings.Split(*only, ",")
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("%d arguments are left over: expected flags only", flags.NArg())
	case s.kubeconfig == "":
		return nil, errors.New("KUBECONFIG is not set: name the file that leads to a cluster; nothing is guessed, because everything of relaypool is deleted from it")
	case s.loadImage == "":
		return nil, errors.New("LOAD_IMAGE is not set: give the command that makes an image archive known to the cluster's nodes, such as 'kind load image-archive'")
	}
	return s, suite.Check(s.only)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	klog.SetOutput(io.Discard) // the client's own remarks: what matters comes as errors
	klog.LogToStderr(false)
	s, err := parse(args, os.Getenv)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.out, 0o750); err != nil {
		return fmt.Errorf("make the folder for logs: %w", err)
	}
	transcript, err := os.Create(filepath.Join(s.out, "report.txt"))
	if err != nil {
		return fmt.Errorf("keep the report: %w", err)
	}
	defer func() { _ = transcript.Close() }() // it has been printed, too
	r := report.New(io.MultiWriter(out, transcript), time.Now)
	c, err := cluster.Connect(s.kubeconfig)
	if err != nil {
		return err
	}
	r.Say("Kubernetes %s", c.Version)
	images, err := prepare(ctx, s, r)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join("hack", "circuit", "verification_key.json"))
	if err != nil {
		return fmt.Errorf("read the development key, which the checkout's root has: %w", err)
	}
	simulated, err := simulator.New(key, simulator.DevelopmentSeed)
	if err != nil {
		return err
	}
	prover, err := wallet.StartProver(ctx, wallet.Options{Progress: transcript})
	if err != nil {
		return err
	}
	err = suite.Run(ctx, suite.Options{
		Cluster: c, Images: images, VerifyingKey: key, Simulator: simulated, Prover: prover, Seed: s.seed,
		Helm: &release.Helm{
			Program: s.helm, Chart: s.chart, Kubeconfig: s.kubeconfig, Namespace: suite.OperatorNamespace, Name: suite.Release, Folder: s.out,
		},
		Folder: s.out, Report: r, Only: s.only, Keep: s.keep, Now: time.Now,
	})
	passed := r.Table()
	if err := errors.Join(err, prover.Close()); err != nil {
		return err
	}
	if !passed {
		return errFailed
	}
	return nil
}

// buildArguments have make build every image for this machine's architecture,
// which the suite's own images are of in any case, and whose nodes are here. Our
// own ARGS would reach that make through the environment.
func buildArguments() []string {
	return []string{"images", "e2e-images", "PLATFORMS=linux/" + runtime.GOARCH, "ARGS="}
}

// prepare builds the images and loads them.
func prepare(ctx context.Context, s *settings, r *report.Report) (*release.Images, error) {
	began := time.Now()
	if s.build {
		command := exec.CommandContext(ctx, "make", buildArguments()...)
		if said, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("make images e2e-images: %w: %s", err, said)
		}
		r.Say("images built in %.1f s", time.Since(began).Seconds())
	}
	began = time.Now()
	loader := release.Loader{Command: s.loadImage, Folder: filepath.Join("bin", "images")}
	images, err := loader.Load(ctx)
	if err != nil {
		return nil, err
	}
	r.Say("images loaded in %.1f s: %s, %s and what they stand on", time.Since(began).Seconds(), images.Operator, images.Relay)
	return images, nil
}
