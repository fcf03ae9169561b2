package check

import (
	"fmt"
	"slices"
)

// Pod is what tells a pod of a fleet from the one that replaces it.
type Pod struct {
	Name, UID string
	// Restarts counts those of its relay.
	Restarts int32
}

// Undisturbed checks that the same pods serve as before and that none was
// restarted. shrunk is by how many pods the autoscaler made the fleet smaller
// meanwhile, which may be gone.
func Undisturbed(before, after []Pod, shrunk int) error {
	var gone []string
	for _, was := range before {
		i := slices.IndexFunc(after, func(is Pod) bool { return is.UID == was.UID })
		switch {
		case i < 0:
			gone = append(gone, was.Name)
		case after[i].Restarts != was.Restarts:
			return fmt.Errorf("the relay of pod %s was restarted %d times", was.Name, after[i].Restarts-was.Restarts)
		}
	}
	if len(gone) > shrunk {
		return fmt.Errorf("pods %v are gone, and the autoscaler took %d away", gone, shrunk)
	}
	return nil
}
