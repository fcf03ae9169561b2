package e2e

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// heldSubmissions maps the submissions that a process holds to their epochs. An epoch counts how
// often the submission was leased and released.
type heldSubmissions map[uuid.UUID]int64

// leaseSnapshot maps the ID of every living process to the submissions that it held at one
// moment. A process has a new ID after each start.
type leaseSnapshot map[uuid.UUID]heldSubmissions

// submissionRow is the state of a submission later on. Owner is zero while no process holds it.
type submissionRow struct {
	Owner uuid.UUID
	Epoch int64
	// Finished says that the submission is complete.
	Finished bool
}

// findDeadProcess finds the one process of the first snapshot that is not in the last one. held
// are its submissions in the last snapshot that has the process.
func findDeadProcess(snapshots []leaseSnapshot) (process uuid.UUID, held heldSubmissions, err error) {
	if len(snapshots) == 0 {
		return process, nil, errors.New("no snapshot was taken yet")
	}
	var dead []uuid.UUID
	for id := range snapshots[0] {
		if _, lives := snapshots[len(snapshots)-1][id]; !lives {
			dead = append(dead, id)
		}
	}
	if len(dead) != 1 {
		return process, nil, fmt.Errorf("%d of %d processes are gone, expected one", len(dead), len(snapshots[0]))
	}
	for _, snapshot := range slices.Backward(snapshots) {
		if last, lives := snapshot[dead[0]]; lives {
			held = last
			break
		}
	}
	return dead[0], held, nil
}

// takenOver returns an error until other processes have claimed all submissions of a dead
// process. Releasing a dead process' lease raises the epoch by one, and claiming the
// submission raises it by one more.
func takenOver(dead uuid.UUID, held heldSubmissions, rows map[uuid.UUID]submissionRow) error {
	waiting := 0
	for id, epoch := range held {
		row, known := rows[id] // no row is deleted so soon
		if !known || !row.Finished && (row.Owner == dead || row.Owner == uuid.Nil && row.Epoch < epoch+2) {
			waiting++
		}
	}
	if waiting > 0 {
		return fmt.Errorf("%d of %d submissions that the killed relay held still belong to it, or have no owner", waiting, len(held))
	}
	return nil
}
