package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/throughput/report"
)

func sample() *report.Report {
	r := &report.Report{Heading: []string{"a machine <of mine>"}}
	latency := report.Group{Title: "Latency", Unit: "ms", Better: report.Less, Aim: 15}
	for _, v := range []float64{12.34, 10, 20} {
		r.Add(latency, "1 process", v)
		r.Add(latency, "4 processes", 2*v)
	}
	r.Add(report.Group{Title: "Calls", Better: report.More}, "1 process", 0)
	r.Note("a note of %d", 1)
	r.Note("a note of %d", 1)
	return r
}

func TestTableComparesMediansWithTheFirstSetup(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := sample().Print(&out); err != nil {
		t.Fatal(err)
	}
	want := `a machine <of mine>

Latency (aim: less than 15.0 ms)
   median   lowest  highest  ratio  set-up
  12.3 ms  10.0 ms  20.0 ms   1.00  1 process
  24.7 ms  20.0 ms  40.0 ms   2.00  4 processes

Calls
  median  lowest  highest  ratio  set-up
    0.00    0.00     0.00      -  1 process

a note of 1
`
	if diff := cmp.Diff(out.String(), want); diff != "" {
		t.Errorf("table (-got +want):\n%s", diff)
	}
}

func TestThePageHasWhatHasAnAimOrATable(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Add(report.Group{Table: "Verification", Title: "Alone", Better: report.Less}, "one core", 0.9)
	r.Add(report.Group{Table: "Verification", Title: "In batches", Better: report.Less, Aim: 0.4}, "one core", 0.5)
	r.Sections = []string{"## Where the time goes\n\nAway.\n"}
	want := `# Performance

Written by ` + "`make bench ARGS='-profile -page docs/performance.md'`" + `. a machine <of mine>

||aim|1 process|4 processes|
|---|---|---|---|
|Latency|15.0 ms|12.3 ms|**24.7 ms**|

Aims that are missed are bold. Those of latency, acceptance and processor time are multiples of a bare
check: gnark-crypto's of the four pairings of a Groth16 proof, on one core.

## Verification

||aim|one core|
|---|---|---|
|Alone||0.90|
|In batches|0.40|**0.50**|

## Where the time goes

Away.

<!-- by hand -->

The disk bounds it.
`
	old := "# Performance\n\nold figures\n\n<!-- by hand -->\n\nThe disk bounds it.\n"
	page := r.Page([]byte(old))
	if diff := cmp.Diff(string(page), want); diff != "" {
		t.Errorf("page (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(string(r.Page(page)), want); diff != "" {
		t.Errorf("written again (-got +want):\n%s", diff)
	}
}

func TestThePictureIsWellFormed(t *testing.T) {
	t.Parallel()
	picture := sample().SVG()
	decoder := xml.NewDecoder(bytes.NewReader(picture))
	texts, bars := "", 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the picture is not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.CharData:
			texts += string(token)
		case xml.StartElement:
			if token.Name.Local == "rect" {
				bars++
			}
		}
	}
	for _, want := range []string{"a machine <of mine>", "Latency (aim: less than 15.0 ms)", "24.7 ms  × 2.00", "4 processes"} {
		if !strings.Contains(texts, want) {
			t.Errorf("the picture's texts do not contain %q", want)
		}
	}
	if want := 4; bars != want {
		t.Errorf("the picture has %d rectangles, want %d: the background and a bar for each row", bars, want)
	}
}

func TestWriteStoresTheReportAsJSON(t *testing.T) {
	t.Parallel()
	paths, err := sample().Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	var read report.Report
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&read, sample()); diff != "" {
		t.Errorf("report (-read +written):\n%s", diff)
	}
}
