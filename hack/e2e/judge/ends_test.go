package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// after gives a time by the seconds since noon.
func after(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

func TestEveryEndHasToBeExplained(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end    End
		victim bool
		want   Tally
		// wantErr is a part of the fault; empty for none.
		wantErr string
	}{
		"told to end, and did in time":                  {end: End{Asked: noon, At: after(7)}, want: Tally{Asked: 1, Slowest: 7 * time.Second}},
		"told to end, and was killed for it":            {end: End{Asked: noon, At: after(60), Code: 137}, wantErr: "told to end: expected 0"},
		"told to end, and took longer than it is given": {end: End{Asked: noon, At: after(61)}, wantErr: "took 1m1s"},
		"told to end, and panicked":                     {end: End{Asked: noon, At: after(1), Code: 2}, wantErr: "told to end: expected 0"},
		"killed by the suite":                           {end: End{At: noon, Code: 137}, victim: true, want: Tally{Killed: 1}},
		"killed by the suite, but it ended itself":      {end: End{At: noon, Code: 1}, victim: true, wantErr: "the suite killed it"},
		"killed by nobody of the suite, as the kernel does that is out of memory": {
			end: End{At: noon, Code: 137, Reason: "OOMKilled"}, wantErr: "ended with 137 (OOMKilled) at 12:00:00: nobody told it to end",
		},
		"restarted by its liveness probe, and ended in order": {end: End{At: noon}, wantErr: "nobody told it to end"},
		"panicked":                        {end: End{At: noon, Code: 2}, wantErr: "nobody told it to end"},
		"a Job's end":                     {end: End{At: noon, Finite: true}, want: Tally{Finished: 1}},
		"a Job that failed":               {end: End{At: noon, Finite: true, Code: 1}, wantErr: "expected 0 of what ends by itself"},
		"an operator that lost the Lease": {end: End{At: noon, Code: 1, LostLease: true}, want: Tally{LostLease: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.end.Pod, tc.end.Container, tc.end.ID, tc.end.Grace = "demo-1", "relay", "a", time.Minute
			got, err := Ends([]End{tc.end}, map[string]bool{"a": tc.victim})
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
				t.Errorf("error %v, want one with %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("tally (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAVictimWhoseEndNobodySawIsAFault(t *testing.T) {
	t.Parallel()
	if _, err := Ends([]End{{ID: "a", Asked: noon, At: noon}}, map[string]bool{"b": true}); err == nil || !strings.Contains(err.Error(), "container b was killed by the suite") {
		t.Errorf("error %v, want one that names b", err)
	}
}
