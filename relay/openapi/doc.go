// Package openapi has the relay's documented interface in Go, generated from
// relay/openapi.yaml: the types of every request and answer, the server
// interface on chi, and a client. The document is the source: change it and run
// go generate.
package openapi

//go:generate go tool -modfile=../../hack/tools/oapi-codegen/go.mod oapi-codegen -config config.yaml ../openapi.yaml
