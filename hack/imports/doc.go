// Package imports holds the rules of who may import whom (architecture.md,
// "Who may import whom") as a test over `go list -deps`.
package imports
