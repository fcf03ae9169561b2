// Package openapi has the relay's documented interface in Go: the types of every
// request and answer, the server interface on chi, and a client. It is generated from
// relay/openapi.yaml, which is the source: change that document and run go generate.
package openapi

//go:generate go tool -modfile=../../hack/tools/oapi-codegen/go.mod oapi-codegen -config config.yaml ../openapi.yaml
