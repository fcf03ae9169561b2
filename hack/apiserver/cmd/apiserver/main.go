// Command apiserver runs the API server of the tests, with the project's resources
// and Kubernetes' own controllers, until it is told to stop: for trying the
// operator by hand. There are no nodes, so that no pod ever runs.
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
	controllers := flag.String("controllers", "deployment-controller,replicaset-controller,job-controller,garbage-collector-controller,namespace-controller",
		"controllers of Kubernetes to run, with commas between them; empty for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, *controllers)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "apiserver: %v\n", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, controllers string) (err error) {
	o := apiserver.Options{Log: os.Stderr}
	if controllers != "" {
		o.Controllers = strings.Split(controllers, ",")
	}
	server, err := apiserver.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	crds, err := apiserver.OwnCRDs()
	if err != nil {
		return err
	}
	if err := server.Install(ctx, crds...); err != nil {
		return err
	}
	kubeconfig, err := server.Kubeconfig()
	if err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%s\n", kubeconfig)
	fmt.Fprintln(os.Stderr, "serving until Ctrl-C")
	<-ctx.Done()
	return nil
}
