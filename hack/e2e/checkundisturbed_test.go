package e2e

import (
	"fmt"
	"slices"
)

// fleetPod has the fields that distinguish a pod of a fleet from its replacement.
type fleetPod struct {
	Name, UID string
	// Restarts counts the restarts of its relay.
	Restarts int32
}

// undisturbed checks that the same pods serve as before and that none was restarted.
// shrunk is the number of pods that the autoscaler removed meanwhile: at most that many
// may be missing.
func undisturbed(before, after []fleetPod, shrunk int) error {
	var gone []string
	for _, was := range before {
		i := slices.IndexFunc(after, func(is fleetPod) bool { return is.UID == was.UID })
		switch {
		case i < 0:
			gone = append(gone, was.Name)
		case after[i].Restarts != was.Restarts:
			return fmt.Errorf("the relay of pod %s was restarted %d times", was.Name, after[i].Restarts-was.Restarts)
		}
	}
	if len(gone) > shrunk {
		return fmt.Errorf("pods %v are gone, but the autoscaler removed %d", gone, shrunk)
	}
	return nil
}
