// Package docs holds the documents against the tree as tests: their links, and
// the names of codes, settings, metrics, targets, paths and log lines in them.
package docs
