// Package manifests holds the manifests in config against the code and against
// a real API server, as tests: what they install, what the operator may do with
// it, and what it does.
package manifests
