// Command apiserver runs the API server of the tests until a signal stops it, for trying the
// operator by hand. It has the project's CRDs and Kubernetes' own controllers. There are no
// nodes, so pods never run.
//
// With -build it only downloads or builds the programs. `make test` does this in parallel with
// the tests that need no API server, because the build takes minutes and `go test` would show no
// progress.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/relaypool/relaypool/hack/apiserver"
)

func main() {
	build := flag.Bool("build", false, "only download or build the programs")
	controllers := flag.String("controllers", "deployment-controller,replicaset-controller,job-controller,garbage-collector-controller,namespace-controller",
		"controllers of Kubernetes to run, with commas between them; empty for none")
	flag.Parse()
	o := apiserver.Options{Log: os.Stderr}
	if *controllers != "" {
		o.Controllers = strings.Split(*controllers, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if *build {
		_, err = apiserver.EnsurePrograms(ctx, os.Stderr, len(o.Controllers) > 0)
	} else {
		err = serve(ctx, o)
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "apiserver: %v\n", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, o apiserver.Options) (err error) {
	server, err := apiserver.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	kubeconfig, err := server.Kubeconfig()
	if err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%s\n", kubeconfig)
	fmt.Fprintln(os.Stderr, "serving until Ctrl-C")
	<-ctx.Done()
	return nil
}
