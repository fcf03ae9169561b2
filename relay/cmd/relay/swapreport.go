package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/submission"
)

// swapReport is the output of relay swaps.
type swapReport struct {
	// Slot is the slot that timeouts are compared with; 0 when unknown. Reckoned says that Slot
	// is an estimate, made without asking the chain.
	Slot     uint64     `json:"slot"`
	Reckoned bool       `json:"slot_reckoned"`
	Swaps    []swapLine `json:"swaps"`
	// ByPhase counts all swaps that are not final. These include executed and refunded swaps,
	// until no fork can undo them. Unfinished counts the swaps that are neither executed nor
	// refunded. Overdue counts the unfinished swaps that are past their timeout slot.
	ByPhase            map[submission.Phase]int64 `json:"by_phase"`
	Unfinished         int64                      `json:"unfinished"`
	OldestAge          float64                    `json:"oldest_age_seconds"`
	Overdue            int64                      `json:"overdue"`
	OldestOverdueSlots uint64                     `json:"oldest_overdue_slots"`
}

// swapLine is one swap.
type swapLine struct {
	JobID     int64            `json:"job_id"`
	RequestID uuid.UUID        `json:"request_id"`
	Phase     submission.Phase `json:"phase"`
	State     submission.State `json:"state"`
	Age       float64          `json:"age_seconds"`
	// If the timeout is unknown, TimeoutSlot is 0 and SlotsLeft is omitted. SlotsLeft is negative
	// past the timeout.
	TimeoutSlot uint64  `json:"timeout_slot"`
	SlotsLeft   *int64  `json:"slots_left,omitempty"`
	WaitsFor    string  `json:"waits_for"`
	DueIn       float64 `json:"due_in_seconds"`
	Tries       int     `json:"tries"`
	Attempts    int     `json:"attempts"`
	Live        int     `json:"live_attempts"`
	Signature   string  `json:"signature,omitempty"`
	Error       string  `json:"error_code,omitempty"`
	Final       bool    `json:"final"`
}

func lineOf(l *store.ListedSwap, slot uint64) swapLine {
	line := swapLine{
		JobID: l.JobID, RequestID: l.ID, Phase: l.Phase, State: l.State, Age: l.Age.Seconds(), TimeoutSlot: l.TimeoutSlot,
		WaitsFor: waitsFor(l), DueIn: l.DueIn.Seconds(), Tries: l.Tries, Attempts: l.Attempts, Live: l.Live, Error: l.Error, Final: l.Final,
	}
	if !l.HasEnded() && l.TimeoutSlot > 0 && slot > 0 {
		left := int64(l.TimeoutSlot) - int64(slot) //nolint:gosec // slots are below 2^63
		line.SlotsLeft = &left
	}
	if l.Signature != nil {
		line.Signature = l.Signature.String()
	}
	return line
}

// waitsFor returns the stored reason of the wait, or derives it from the row if none is stored.
func waitsFor(l *store.ListedSwap) string {
	switch {
	case l.Final, l.State == submission.Failed:
		return ""
	case l.HasEnded():
		return "finality"
	case l.HeldBy != "":
		return l.HeldBy
	case l.Live > 0:
		return "confirmation"
	case l.Leased:
		return "its worker"
	case l.DueIn > 0:
		return "its next try"
	default:
		return "a worker"
	}
}

func (r *swapReport) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r *swapReport) writeTable(w io.Writer) error {
	if len(r.Swaps) > 0 {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "job\trequest\tphase\tage\ttimeout slot\tslots left\twaits for\ttries\tattempts\tended by")
		for i := range r.Swaps {
			l := &r.Swaps[i]
			left := "-"
			if l.SlotsLeft != nil {
				left = fmt.Sprint(*l.SlotsLeft)
			}
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%d\t%s\t%s\t%d\t%d\t%s\n",
				l.JobID, l.RequestID, dash(string(l.Phase)), inSeconds(l.Age), l.TimeoutSlot, left, dash(l.WaitsFor), l.Tries, l.Attempts, dash(l.Signature+l.Error))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintln(w, r.total())
	return err
}

// total returns the last line. It counts all unfinished swaps, also those that are not listed.
func (r *swapReport) total() string {
	slot := ""
	switch {
	case r.Reckoned:
		slot = fmt.Sprintf(" At about slot %d, estimated from the newest that the relays observed.", r.Slot)
	case r.Slot > 0:
		slot = fmt.Sprintf(" At slot %d.", r.Slot)
	}
	if r.Unfinished == 0 {
		return "No swap is unfinished." + slot
	}
	var phases []string
	for _, p := range []submission.Phase{submission.PhaseFunded, submission.PhaseQuoted} {
		if n := r.ByPhase[p]; n > 0 {
			phases = append(phases, fmt.Sprintf("%d %s", n, p))
		}
	}
	late := "none past its timeout slot"
	if r.Overdue > 0 {
		late = fmt.Sprintf("%d past the timeout slot, the longest by %d slots", r.Overdue, r.OldestOverdueSlots)
	}
	if r.Slot == 0 {
		late = "timeouts not checked, because no slot is known"
	}
	return fmt.Sprintf("Unfinished: %d (%s), the oldest %s old; %s.%s", r.Unfinished, strings.Join(phases, ", "), inSeconds(r.OldestAge), late, slot)
}

func inSeconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
