// Package docs tests the documents against the tree: their links, and the names of codes,
// settings, metrics, targets, paths and log lines in them.
package docs
