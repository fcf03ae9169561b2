//go:build tools

// Package etcd pins the etcd release that keeps the API server's objects. It
// is a module of its own so that its dependencies stay out of the others.
package etcd

import _ "go.etcd.io/etcd/server/v3"
