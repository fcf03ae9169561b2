//go:build tools

// Package kubernetes pins the Kubernetes release whose API server and
// controllers tests run. It is a module of its own because k8s.io/kubernetes
// is built with replace directives and keeps its dependencies to itself.
package kubernetes

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
