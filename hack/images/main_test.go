package main

import (
	"fmt"
	"os"
	"testing"
)

// sourcesVariable has a digest of the whole checkout when `make test` runs this.
// These tests read and build what is outside of their module, which go test's
// cache does not see; a variable that they look at it does. By hand, -count=1 does
// the same.
const sourcesVariable = "RELAYPOOL_SOURCES"

func TestMain(m *testing.M) {
	if digest := os.Getenv(sourcesVariable); digest != "" {
		fmt.Println("sources", digest)
	}
	os.Exit(m.Run())
}
