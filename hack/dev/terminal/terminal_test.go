package terminal_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/dev/terminal"
)

func TestPrinter(t *testing.T) {
	t.Parallel()
	plain := terminal.Style{}
	tests := map[string]struct {
		style terminal.Style
		print func(*terminal.Printer)
		want  string
	}{
		"values are aligned by their labels' characters, not bytes": {
			plain,
			func(p *terminal.Printer) {
				p.Title("Starting")
				p.Fact("root", "%x", []byte{1, 2})
				p.Fact("a→b", "%d", 3)
				p.Fact("a label of twenty-six chars", "4")
			},
			"\nStarting\n   root              0102\n   a→b               3\n   a label of twenty-six chars 4\n",
		},
		"steps are numbered": {
			plain,
			func(p *terminal.Printer) { p.Step(3, "Deposit"); p.Fact("a", "done") },
			"\n 3 Deposit\n   a                 done\n",
		},
		"other programs' output is printed in whole lines": {
			plain,
			func(p *terminal.Printer) {
				for _, part := range []string{"one\n\ntw", "o\nthr"} {
					if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
						t.Errorf("wrote %d of %d bytes, error %v", n, len(part), err)
					}
				}
			},
			"   one\n   two\n",
		},
		"without a terminal, long work prints a line every five seconds": {
			plain,
			func(p *terminal.Printer) {
				done := p.Busy("proving %d", 1)
				time.Sleep(11 * time.Second)
				done()
				done()
				p.Fact("proof", "11 s")
			},
			"   proving 1 … 5 s\n   proving 1 … 10 s\n   proof             11 s\n",
		},
		"on a terminal, the live line stays below other lines and is removed at the end": {
			terminal.Style{Live: true},
			func(p *terminal.Printer) {
				done := p.Busy("proving")
				time.Sleep(150 * time.Millisecond)
				p.Fact("a", "between")
				time.Sleep(100 * time.Millisecond)
				done()
				p.Fact("proof", "250 ms")
			},
			"\r\x1b[K   proving … 0.1 s" +
				"\r\x1b[K   a                 between\n   proving … 0.1 s" +
				"\r\x1b[K   proving … 0.2 s" +
				"\r\x1b[K   proof             250 ms\n",
		},
		"quick work prints no line": {
			terminal.Style{Live: true},
			func(p *terminal.Printer) { p.Busy("quick")(); p.Fact("a", "done") },
			"   a                 done\n",
		},
		"colours are reset after each text": {
			terminal.Style{Colour: true},
			func(p *terminal.Printer) { p.Title("T"); p.Fact("l", "v") },
			"\n\x1b[1mT\x1b[0m\n   \x1b[2ml                 \x1b[0mv\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				tc.print(terminal.New(&out, tc.style))
				if diff := cmp.Diff(tc.want, out.String()); diff != "" {
					t.Errorf("printed (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ got, want string }{
		"zero":                   {terminal.Grouped(0), "0"},
		"three digits":           {terminal.Grouped(999), "999"},
		"four digits":            {terminal.Grouped(1000), "1 000"},
		"the largest":            {terminal.Grouped(1<<64 - 1), "18 446 744 073 709 551 615"},
		"an amount":              {terminal.Lamports(5_300_000), "5 300 000 lamports"},
		"less than a second":     {terminal.Seconds(612 * time.Millisecond), "612 ms"},
		"a second and some more": {terminal.Seconds(1260 * time.Millisecond), fmt.Sprintf("%.1f s", 1.26)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.got != tc.want {
				t.Errorf("got %q, want %q", tc.got, tc.want)
			}
		})
	}
}
