//go:build unix && !linux

package apiservertest_test

// Without a parent-death signal there is nothing to test here.
const abandonVariable = "RELAYPOOL_TEST_ABANDON"

func abandon() {}
