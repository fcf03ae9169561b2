// Package e2e tests the project end to end on a real cluster: the steps of a user with the
// chart and a RelayPool, and faults in a cluster. The scenarios are subtests of TestE2E,
// which make e2e runs; docs/engineering/e2e.md describes them. Package check checks the
// observations, and is tested without a cluster.
package e2e
