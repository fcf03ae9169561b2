// Package timeline draws a drill: load, outcomes and backlog over time, and the
// faults of each moment. It is a pure function from figures to SVG.
package timeline

import "time"

// Sample holds the counts at one time.
type Sample struct {
	At time.Duration `json:"at_ns"`
	// Started counts the spends that clients started.
	Started int `json:"begun"`
	// Known reports that the database answered; only then are the fields below set.
	Known bool `json:"known"`
	// Accepted counts submissions; Completed and Failed count those with that outcome. The
	// others are the backlog.
	Accepted  int `json:"accepted"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	// Between counts the swaps whose first leg is completed and whose second is not.
	// Executed and Refunded count the swaps whose second leg executed or refunded them.
	Between  int `json:"between"`
	Executed int `json:"executed"`
	Refunded int `json:"refunded"`
}

// Backlog is the number of submissions without an outcome.
func (s Sample) Backlog() int { return s.Accepted - s.Completed - s.Failed }

// Band is a fault with its start and end. From and To are equal for a fault without a duration.
type Band struct {
	// Lane is the row that the band is drawn in: the part that had the fault.
	Lane  string        `json:"lane"`
	Label string        `json:"label"`
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
}

// Timeline is a whole drill.
type Timeline struct {
	Title, Subtitle string
	// Load is the time at which the load and the faults ended.
	Load    time.Duration
	Samples []Sample
	Bands   []Band
	// Lanes lists the lanes from top to bottom.
	Lanes []string
}
