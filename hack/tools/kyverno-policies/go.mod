module github.com/relaypool/relaypool/hack/tools/kyverno-policies

go 1.26.8

// Kyverno's Helm chart of its policies for pods is in this module. The package is small, and
// listed only so that go mod tidy keeps the module.
tool github.com/kyverno/kyverno/ext/wildcard

require (
	github.com/IGLOU-EU/go-wildcard v1.0.3 // indirect
	github.com/kyverno/kyverno v1.19.1 // indirect
)
