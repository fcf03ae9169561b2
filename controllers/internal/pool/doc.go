// Package pool reconciles RelayPools. A pass has four steps: observe (reads), Decide
// (pure), apply (writes) and Report (pure). It ends with one write of the status, and events
// of what changed.
//
// A pass waits neither for the chain, nor for Postgres, nor for a pod. Package chainwatch
// reads the chain, and a Poller reads the backlog. Both run concurrently with passes, and a
// pass uses their last good reading.
package pool
