package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/relaypool/relaypool/hack/throughput/report"
)

// cryptoText is where hack/bench/compare writes its figures.
var (
	cryptoText = filepath.Join("bin", "bench", "crypto.txt")
	batchLine  = regexp.MustCompile(`(?m)^BenchmarkBatch/size=(\d+)/forged=none\S*\s.*?([0-9.e+-]+) bare-checks/proof`)
)

// addCrypto adds the verification of proofs in batches, as hack/bench/compare has measured it.
func (b *bench) addCrypto(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read what the comparison of the cryptography has measured: %w", err)
	}
	aims := map[string]float64{"16": 0.42, "64": 0.35}
	matches := batchLine.FindAllSubmatch(text, -1)
	if len(matches) == 0 {
		return fmt.Errorf("%s has no figure of a batch: expected lines that match %s", path, batchLine)
	}
	for _, match := range matches {
		size := string(match[1])
		v, err := strconv.ParseFloat(string(match[2]), 64)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		b.report.Add(report.Group{Table: "Verification", Title: "Bare checks of a proof, in batches of " + size, Better: report.Less, Aim: aims[size]}, "one core", v)
	}
	return nil
}
