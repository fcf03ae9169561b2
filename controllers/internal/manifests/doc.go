// Package manifests tests the manifests in config against the code and against a real
// API server: which objects they install, what the operator is permitted to do with
// them, and what it does.
package manifests
