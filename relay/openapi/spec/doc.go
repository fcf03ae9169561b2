// Package spec embeds relay/openapi.yaml, for tests that check the relay's answers
// against it.
package spec

//go:generate go tool -modfile=../../../hack/tools/oapi-codegen/go.mod oapi-codegen -config config.yaml ../../openapi.yaml
