package main

import (
	"fmt"
	"os"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
)

// checkFeePayerKeys checks the key files, so that a damaged one is listed with the other
// problems. The configuration's own check reports a missing file. It does so without the path,
// because a user may have passed the key itself as the path.
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
