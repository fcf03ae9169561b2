package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// terminationFile is the file from which Kubernetes reads a container's termination
	// message.
	terminationFile = contract.TerminationLog
	// maxTermination is the length of the message that Kubernetes keeps, in bytes.
	maxTermination = 4096
)

// writeTerminationMessage writes line to path, as one line. Without a path it uses the file from
// which Kubernetes reads the message, or writes nothing where that file does not exist.
func writeTerminationMessage(path, line string) error {
	if path == "" {
		if _, err := os.Stat(terminationFile); err != nil {
			return nil
		}
		path = terminationFile
	}
	line = strings.Join(strings.Fields(line), " ")
	if err := os.WriteFile(path, []byte(line[:min(len(line), maxTermination)]), 0o600); err != nil {
		return fmt.Errorf("--termination-log: %w", err)
	}
	return nil
}
