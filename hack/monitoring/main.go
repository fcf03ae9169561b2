// Command monitoring writes what is generated for Prometheus, Grafana and their
// readers: the dashboards of the chart and the list of the alerts.
//
// It is a module of its own, so that Prometheus stays out of the product.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/relaypool/relaypool/hack/monitoring/alerts"
	"github.com/relaypool/relaypool/hack/monitoring/boards"
)

//go:generate go run . -root ../..

func main() {
	root := flag.String("root", ".", "`folder` of the checkout")
	flag.Parse()
	if err := generate(*root); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

// generate writes every generated file.
func generate(root string) error {
	list, err := alerts.List(root)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(root, alerts.Page), list); err != nil {
		return err
	}
	for _, b := range boards.All() {
		content, err := b.JSON()
		if err != nil {
			return err
		}
		if err := write(filepath.Join(root, boards.Folder, boards.File(b)), content); err != nil {
			return err
		}
	}
	return nil
}

func write(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return fmt.Errorf("write a generated file: %w", err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // a public file of the tree
		return fmt.Errorf("write a generated file: %w", err)
	}
	return nil
}
