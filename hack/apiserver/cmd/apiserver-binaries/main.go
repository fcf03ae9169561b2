// Command apiserver-binaries gets the API server that tests run, or builds it, unless
// it is there, and prints its files. `make test` runs it beside the tests that need
// none, because `go test` shows nothing of a build that takes minutes.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/relaypool/relaypool/hack/apiserver"
)

func main() {
	controllers := flag.Bool("controllers", false, "build kube-controller-manager too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	files, err := apiserver.EnsureBinaries(ctx, os.Stderr, *controllers)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "apiserver-binaries: %v\n", err)
		os.Exit(1)
	}
	for _, program := range slices.Sorted(maps.Keys(files)) {
		fmt.Println(files[program])
	}
}
