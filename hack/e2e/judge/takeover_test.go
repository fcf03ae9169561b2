package judge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// id makes ids that tell themselves apart.
func id(n byte) uuid.UUID { return uuid.UUID{15: n} }

var (
	victim, other, third, newcomer = id(1), id(2), id(3), id(4)
	held                           = Held{id(11): 1, id(12): 5}
)

func TestWhatAKilledProcessHeldIsWhatItWasLastSeenWith(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seen []Sighting
		want Held
		// wantComplaint is a part; empty for none.
		wantComplaint string
	}{
		"killed": {
			seen: []Sighting{{victim: {id(10): 1}, other: {}}, {victim: held, other: {}}, {other: {}, newcomer: {}}},
			want: held,
		},
		"killed with nothing":             {seen: []Sighting{{victim: {id(10): 1}, other: {}}, {victim: {}, other: {}}, {other: {}}}, want: Held{}},
		"not forgotten yet":               {seen: []Sighting{{victim: held, other: {}}, {victim: held, other: {}}}, wantComplaint: "0 of 2"},
		"two of them, as after an outage": {seen: []Sighting{{victim: held, other: {}}, {}}, wantComplaint: "2 of 2"},
		"not seen":                        {wantComplaint: "not seen yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			process, got, complaint := Gone(tc.seen)
			if (tc.wantComplaint == "") != (complaint == "") || !strings.Contains(complaint, tc.wantComplaint) {
				t.Errorf("complaint %q, want %q", complaint, tc.wantComplaint)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if complaint == "" && process != victim {
				t.Errorf("process %s, want %s", process, victim)
			}
		})
	}
}

func TestTheWorkOfAKilledProcessIsTakenUpByLivingOnes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		row  Row
		want bool
	}{
		"taken from the dead and taken up":                 {Row{Owner: other, Epoch: 7}, true},
		"taken up and put off again":                       {Row{Epoch: 7}, true},
		"finished by whoever took it up":                   {Row{Epoch: 7, Finished: true}, true},
		"finished by the process before it died":           {Row{Epoch: 5, Finished: true}, true},
		"put off by the process before it died, taken up":  {Row{Owner: other, Epoch: 6}, true},
		"still the dead one's":                             {Row{Owner: victim, Epoch: 5}, false},
		"taken from the dead, and left lying":              {Row{Epoch: 6}, false},
		"put off by the process before it died, and lying": {Row{Epoch: 5}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := map[uuid.UUID]Row{id(11): {Owner: third, Epoch: 3}, id(12): tc.row}
			if got := InOtherHands(victim, held, now); (got == "") != tc.want {
				t.Errorf("complaint %q, want one: %t", got, !tc.want)
			}
		})
	}
	if InOtherHands(victim, held, nil) == "" {
		t.Error("rows that are not there are content")
	}
}

func TestHeirsAreThoseThatWereThereBefore(t *testing.T) {
	t.Parallel()
	first := Sighting{victim: held, other: {}, third: {id(13): 1}}
	for name, tc := range map[string]struct {
		later []Sighting
		want  []uuid.UUID
	}{
		"one of the others":               {[]Sighting{{other: {id(11): 3}, third: {}}}, []uuid.UUID{other}},
		"both of them, one after another": {[]Sighting{{other: {id(11): 3}, third: {}}, {other: {}, third: {id(12): 7}}}, []uuid.UUID{other, third}},
		"the restarted one alone":         {[]Sighting{{other: {}, third: {}, newcomer: {id(11): 3, id(12): 7}}}, nil},
		"nobody":                          {[]Sighting{{other: {id(14): 1}, third: {id(13): 1}}}, nil},
		"the dead one itself":             {[]Sighting{{victim: {id(11): 3}, other: {}, third: {}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Heirs(append([]Sighting{first}, tc.later...), victim, held)); diff != "" {
				t.Errorf("heirs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRowsShowWhoHoldsThem(t *testing.T) {
	t.Parallel()
	now := map[uuid.UUID]Row{id(11): {Owner: other, Epoch: 3}, id(12): {Owner: other, Epoch: 7}, id(13): {Owner: third, Epoch: 1}, id(14): {Epoch: 2}}
	want := Sighting{other: {id(11): 3, id(12): 7}, third: {id(13): 1}}
	if diff := cmp.Diff(want, Owners(now)); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

func TestAFleetIsUndisturbedWhenItsPodsAreTheSame(t *testing.T) {
	t.Parallel()
	before := []Pod{{"a", "1", 0}, {"b", "2", 1}, {"c", "3", 0}}
	for name, tc := range map[string]struct {
		after  []Pod
		shrunk int
		// want is a part of the fault; empty for none.
		want string
	}{
		"the same pods":                        {after: before},
		"one more":                             {after: append([]Pod{{"d", "4", 0}}, before...)},
		"one less, by the autoscaler":          {after: before[:2], shrunk: 1},
		"one less, by nobody":                  {after: before[:2], want: "pods [c] are gone"},
		"two less, of which it took one":       {after: before[:1], shrunk: 1, want: "pods [b c] are gone"},
		"a pod of that name is another one":    {after: []Pod{{"a", "1", 0}, {"b", "9", 1}, {"c", "3", 0}}, want: "pods [b] are gone"},
		"a relay was started again":            {after: []Pod{{"a", "1", 0}, {"b", "2", 3}, {"c", "3", 0}}, want: "pod b was restarted 2 times"},
		"started again while the fleet shrank": {after: []Pod{{"a", "1", 1}}, shrunk: 2, want: "pod a was restarted 1 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Undisturbed(before, tc.after, tc.shrunk)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
