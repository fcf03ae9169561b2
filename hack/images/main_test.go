package main

import (
	"fmt"
	"os"
	"testing"
)

// sourcesVariable has a digest of the whole checkout when `make test` runs this. These tests
// read and build files outside of their module, which go test's cache does not track. It does
// track a variable that they read. By hand, -count=1 has the same
// effect.
const sourcesVariable = "RELAYPOOL_SOURCES"

func TestMain(m *testing.M) {
	if digest := os.Getenv(sourcesVariable); digest != "" {
		fmt.Println("sources", digest)
	}
	os.Exit(m.Run())
}
