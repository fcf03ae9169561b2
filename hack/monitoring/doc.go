// Package alerts holds the operator's alerting rules against Prometheus itself.
// It is a module of its own, so that Prometheus stays out of the product.
package alerts
