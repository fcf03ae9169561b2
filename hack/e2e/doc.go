// Package e2e tests the project end to end on a real cluster: the steps of a user with the
// chart and a RelayPool, and faults in a cluster. The scenarios are subtests of TestE2E,
// which make e2e runs; docs/engineering/e2e.md describes them. The files check*_test.go decide
// whether the observations of the suite are as they should be. They are pure, so that each
// decision is tested without a cluster.
package e2e
