// Package pool reconciles RelayPools. One pass observes (reads only), decides
// (Decide, pure), applies (writes only) and reports (Report, pure; then one
// write of the status, and events of what changed).
//
// Nothing here waits for the chain, for Postgres or for a pod: package
// chainwatch reads the chain and a Poller the backlog, both concurrently with
// the passes, which use their last good reading.
package pool
