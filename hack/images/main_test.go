package main

import (
	"fmt"
	"os"
	"testing"
)

// sourcesVariable has a digest of the whole checkout when `make test` runs these tests. They
// read and build files outside of their module, which go test's cache does not track. The
// cache does track a variable that tests read. By hand, -count=1 has the same effect.
const sourcesVariable = "RELAYPOOL_SOURCES"

func TestMain(m *testing.M) {
	if digest := os.Getenv(sourcesVariable); digest != "" {
		fmt.Println("sources", digest)
	}
	os.Exit(m.Run())
}
