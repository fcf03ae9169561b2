// Command apiserver-binaries builds the API server that tests run, unless the
// user's cache folder has it, and prints the folder. `make test` runs it first,
// because `go test` shows nothing of a build that takes minutes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/relaypool/relaypool/hack/apiserver"
)

func main() {
	controllers := flag.Bool("controllers", false, "build kube-controller-manager too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	dir, err := apiserver.EnsureBinaries(ctx, os.Stderr, *controllers)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "apiserver-binaries: %v\n", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}
