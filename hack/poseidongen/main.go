// Command poseidongen derives the constants of the Poseidon hash as circom uses it over BN254 and
// writes them as Go source: the optimised ones for relay/merkle, the plain ones for hack/circuit,
// which lives in a module of its own and cannot import this one.
//
// Run it with go generate in relay/merkle.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	merkle := flag.String("merkle", "", "file for relay/merkle's optimised constants")
	circuit := flag.String("circuit", "", "file for hack/circuit's plain constants")
	flag.Parse()
	if err := run(*merkle, *circuit); err != nil {
		fmt.Fprintln(os.Stderr, "poseidongen:", err)
		os.Exit(1)
	}
}

func run(merkle, circuit string) error {
	if merkle == "" || circuit == "" {
		return fmt.Errorf("both -merkle and -circuit are required: name the two files to write")
	}
	instances, err := derive()
	if err != nil {
		return err
	}
	if err := write(merkle, instances, merkleSource); err != nil {
		return err
	}
	return write(circuit, instances, circuitSource)
}

func write(path string, instances []*instance, source func([]*instance) ([]byte, error)) error {
	text, err := source(instances)
	if err != nil {
		return fmt.Errorf("format %s: %w", path, err)
	}
	return os.WriteFile(path, text, 0o644) //nolint:gosec // generated source is readable by everyone
}
