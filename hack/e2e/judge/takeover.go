package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
)

// Held are the submissions that a process holds, with their epochs, which count
// how often each was given and taken away.
type Held map[uuid.UUID]int64

// Sighting is what every living process held at one moment, by the process' id,
// which is another one after each start.
type Sighting map[uuid.UUID]Held

// Row is how a submission stands later on. Owner is zero while nobody holds it.
type Row struct {
	Owner uuid.UUID
	Epoch int64
	// Finished says that nothing is left to do.
	Finished bool
}

// Gone finds the process that was there at first and is no more, and what it held
// when it was last seen. complaint says why there is none, or empty.
func Gone(seen []Sighting) (process uuid.UUID, held Held, complaint string) {
	if len(seen) == 0 {
		return process, nil, "the processes were not seen yet"
	}
	var gone []uuid.UUID
	for id := range seen[0] {
		if _, lives := seen[len(seen)-1][id]; !lives {
			gone = append(gone, id)
		}
	}
	if len(gone) != 1 {
		return process, nil, fmt.Sprintf("%d of %d processes are gone, expected one", len(gone), len(seen[0]))
	}
	for _, s := range slices.Backward(seen) {
		if last, lives := s[gone[0]]; lives {
			return gone[0], last, ""
		}
	}
	return process, nil, "" // not reached: the first sighting has it
}

// InOtherHands says how many of the submissions that a dead process held nobody
// has taken up since. Taking one from the dead raises its epoch by one, and giving
// it to a living one by another.
func InOtherHands(dead uuid.UUID, held Held, now map[uuid.UUID]Row) (complaint string) {
	waiting := 0
	for id, epoch := range held {
		row, known := now[id]
		switch {
		case !known: // none is deleted so soon
			waiting++
		case row.Finished:
		case row.Owner == dead:
			waiting++
		case row.Owner == uuid.Nil && row.Epoch < epoch+2:
			waiting++
		}
	}
	if waiting > 0 {
		return fmt.Sprintf("%d of %d submissions that the killed relay held are still its own, or nobody's", waiting, len(held))
	}
	return ""
}

// Owners is what rows show of who holds them: not all that each of them holds.
func Owners(now map[uuid.UUID]Row) Sighting {
	seen := make(Sighting)
	for id, row := range now {
		if row.Owner == uuid.Nil {
			continue
		}
		if seen[row.Owner] == nil {
			seen[row.Owner] = make(Held)
		}
		seen[row.Owner][id] = row.Epoch
	}
	return seen
}

// Heirs are the processes, of those that were there from the first, that held
// something of the dead one's after it. What was started since is none.
func Heirs(seen []Sighting, dead uuid.UUID, held Held) []uuid.UUID {
	heirs := make(map[uuid.UUID]bool)
	for _, s := range seen {
		for process, holds := range s {
			if _, before := seen[0][process]; !before || process == dead {
				continue
			}
			for id, epoch := range holds {
				if was, inherited := held[id]; inherited && epoch > was {
					heirs[process] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(heirs), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
}

// Pod is what makes one pod of a fleet another one than before.
type Pod struct {
	Name, UID string
	// Restarts counts those of its relay.
	Restarts int32
}

// Undisturbed holds that the same pods serve as before and that none was started
// again. shrunk is by how many pods the autoscaler made the fleet smaller
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
