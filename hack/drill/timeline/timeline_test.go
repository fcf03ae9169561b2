package timeline_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/drill/timeline"
)

//go:generate go test -run ^TestPicture$ . -update

var update = flag.Bool("update", false, "rewrite the golden picture")

func drill() *timeline.Timeline {
	t := &timeline.Timeline{
		Title: "Drill with seed 7", Subtitle: `40 submissions & "more" <of them>`, Load: 20 * time.Second,
		Lanes: []string{"load", "relay 1", "Postgres", "endpoint 1", "chain", "market", "router"},
		Bands: []timeline.Band{
			{Lane: "endpoint 1", Label: "slow", From: 3 * time.Second, To: 9 * time.Second},
			{Lane: "endpoint 1", Label: "hangs", From: 5 * time.Second, To: 7 * time.Second},
			{Lane: "endpoint 1", Label: "lies: all landed", From: 14 * time.Second, To: 26 * time.Second},
			{Lane: "endpoint 1", Label: "errors", From: 10 * time.Second, To: 13 * time.Second},
			{Lane: "relay 1", Label: "SIGKILL", From: 2 * time.Second, To: 6 * time.Second},
			{Lane: "Postgres", Label: "crash", From: 11 * time.Second, To: 13 * time.Second},
			{Lane: "market", Label: "80 %", From: 4 * time.Second, To: 9 * time.Second},
			{Lane: "router", Label: "other_user", From: 7 * time.Second, To: 12 * time.Second},
			{Lane: "chain", Label: "fork −3, lost", From: 8 * time.Second, To: 8 * time.Second},
		},
	}
	for i := range 52 {
		at := time.Duration(i) * 500 * time.Millisecond
		started := min(2*i, 80)
		s := timeline.Sample{At: at, Started: started, Known: true, Accepted: started / 2, Completed: started / 3, Failed: i / 20, Between: max(0, 9-i/5), Executed: i / 6, Refunded: i / 15}
		if at >= 11*time.Second && at < 13*time.Second {
			s = timeline.Sample{At: at, Started: started}
		}
		t.Samples = append(t.Samples, s)
	}
	return t
}

func TestPicture(t *testing.T) {
	got := timeline.SVG(drill())
	const golden = "testdata/drill.svg"
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("picture (-golden +now); go generate rewrites it; look at the result:\n%s", diff)
	}
}

// A picture equal to the golden can still be wrong: it must be well-formed, and nothing may be
// outside of it.
func TestPicturesAreWellFormed(t *testing.T) {
	t.Parallel()
	tests := map[string]*timeline.Timeline{
		"a drill":                    drill(),
		"an empty timeline":          {},
		"samples without a database": {Title: "x", Load: time.Second, Samples: []timeline.Sample{{}, {At: time.Second, Started: 3}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, timeline.SVG(tc))
		})
	}
}

func check(t *testing.T, picture []byte) {
	t.Helper()
	if bytes.Contains(picture, []byte("NaN")) || bytes.Contains(picture, []byte("Inf")) {
		t.Error("the picture contains NaN or Inf")
	}
	var width, height float64
	for decoder := xml.NewDecoder(bytes.NewReader(picture)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range start.Attr {
			if a.Name.Local == "viewBox" {
				box := strings.Fields(a.Value)
				width, height = number(t, box[2]), number(t, box[3])
			}
			limit := map[string]float64{"x": width, "x1": width, "x2": width, "y": height, "y1": height, "y2": height}[a.Name.Local]
			if limit > 0 && (number(t, a.Value) < 0 || number(t, a.Value) > limit) {
				t.Errorf("%s %s=%s lies outside of %gx%g", start.Name.Local, a.Name.Local, a.Value, width, height)
			}
		}
	}
	if width == 0 {
		t.Error("the picture has no viewBox")
	}
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestThePictureIsLabelled(t *testing.T) {
	t.Parallel()
	picture := string(timeline.SVG(drill()))
	for _, want := range []string{
		"Drill with seed 7", "&lt;of them&gt;", "per second", ">submissions<", "spends started by clients", "submissions completed",
		"backlog: accepted, without an outcome", "load and faults end", "between their legs", "executed, in all", "refunded, in all", "the database does not answer", "relay 1", "SIGKILL", "fork −3, lost", "10 s",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
}
