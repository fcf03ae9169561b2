package main

import (
	"fmt"
	"os"
	"testing"
)

// sourcesVariable names an environment variable that `make test` sets to a digest of the whole
// checkout. These tests read and build files outside of their module, which go test's cache does
// not track; it does track variables that tests read. Without make, use -count=1.
const sourcesVariable = "RELAYPOOL_SOURCES"

func TestMain(m *testing.M) {
	if digest := os.Getenv(sourcesVariable); digest != "" {
		fmt.Println("sources", digest)
	}
	os.Exit(m.Run())
}
