// Package e2e tests the project end to end on a real cluster: what a user does with
// the chart and a RelayPool, and what goes wrong there. The scenarios are subtests of
// TestE2E, which make e2e runs; docs/engineering/e2e.md says how. What decides
// whether an observation is right is in package check, and tested without a cluster.
package e2e
