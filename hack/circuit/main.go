// Command circuit proves transactions of the shielded pool for tests and demonstrations. It is for
// development only: its keys come from a published seed, with which anybody can forge proofs.
//
//	circuit vk       prints the verifying key in the JSON of snarkjs' verification_key.json
//	circuit serve    reads requests from stdin and writes answers to stdout, one per line
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/consensys/gnark/logger"

	"github.com/relaypool/relaypool/hack/circuit/setup"
)

const warning = `
*** FOR DEVELOPMENT ONLY ***
These keys come from a seed that everybody can read. Whoever reads it can forge
a proof of any transaction. Never let a pool that holds value accept them.

`

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "circuit:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) != 1 || (args[0] != "vk" && args[0] != "serve") {
		return errors.New("want one argument: vk (print the verifying key) or serve (prove the requests on stdin)")
	}
	// gnark would log to stdout, which is for the answers.
	logger.Disable()
	fmt.Fprint(stderr, warning)

	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("find the cache folder for the keys (set XDG_CACHE_HOME or HOME): %w", err)
	}
	keys, err := setup.Load(filepath.Join(cache, "relaypool", "circuit"), stderr)
	if err != nil {
		return err
	}
	if args[0] == "serve" {
		return serve(keys, stdin, stdout)
	}
	text, err := setup.SnarkJS(keys.Verifying)
	if err != nil {
		return err
	}
	_, err = stdout.Write(text)
	return err
}
