package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// containerLog is the file from which Kubernetes reads a container's termination
	// message.
	containerLog = contract.TerminationLog
	// maxTermination is the length of the message that Kubernetes keeps, in bytes.
	maxTermination = 4096
)

// writeTerminationMessage writes the termination message to the file in which Kubernetes looks for it.
func writeTerminationMessage(path, line string) error {
	if path == "" {
		if _, err := os.Stat(containerLog); err != nil {
			return nil
		}
		path = containerLog
	}
	line = strings.Join(strings.Fields(line), " ")
	if err := os.WriteFile(path, []byte(line[:min(len(line), maxTermination)]), 0o600); err != nil {
		return fmt.Errorf("--termination-log: %w", err)
	}
	return nil
}
