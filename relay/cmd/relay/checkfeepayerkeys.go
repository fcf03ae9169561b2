package main

import (
	"fmt"
	"os"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
)

// checkFeePayerKeys checks the keys' files, so that a damaged one is listed with the other
// problems. A missing file is reported by the configuration's check, without the path, which
// may be a key in the wrong place.
func checkFeePayerKeys(paths []string) error {
	var existing []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		entries, _ := os.ReadDir(path) // none for a file
		if info.Size() > 0 && (!info.IsDir() || len(entries) > 0) {
			existing = append(existing, path)
		}
	}
	if len(existing) == 0 {
		return nil
	}
	if _, err := feepayer.ReadKeys(existing); err != nil {
		return fmt.Errorf("--fee-payer-key-file ($%s): %w", contract.EnvFeePayerKeyFile, err)
	}
	return nil
}
