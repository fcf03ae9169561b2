// Package contract has the constants that operator and relay share: ports, paths,
// environment, metric names and drain timings. Each is defined only here. The package
// imports only the standard library.
package contract

// Version is this release of the relay, X.Y.Z under semantic versioning, as the service
// information document and GET /health report it. They also report the build identity.
const Version = "0.1.0"
