// Package pool reconciles RelayPools. One pass observes (reads only), decides
// (Decide, pure), applies (writes only) and reports (Report, pure; then one
// write of the status, and events of what changed).
//
// Nothing here waits for the chain, for Postgres or for a pod: the chain is read
// by package chainwatch and the backlog by a Poller, both beside the passes,
// which take up the last good reading.
package pool
