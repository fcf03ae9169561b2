// Package terminal prints a demonstration for a person: titles, aligned values,
// and a line that shows the time of current work. Without a terminal it prints
// plain lines.
package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// labelWidth is the width of the labels' column.
	labelWidth = 18
	// redrawEvery is the interval at which the live line on a terminal is redrawn. Without a
	// terminal, a line names the current work every remindEvery: a log shows the progress of
	// long work, and no line for quick work.
	redrawEvery = 100 * time.Millisecond
	remindEvery = 5 * time.Second

	bold, dim, green, reset = "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[0m"
	clearLine               = "\r\x1b[K"
)

// Style describes the abilities of the reader's screen.
type Style struct {
	// Live redraws a line during work.
	Live bool
	// Colour marks titles and labels.
	Colour bool
}

// StyleOf returns the style for f, which may be a terminal. NO_COLOR
// (https://no-color.org) turns colours off.
func StyleOf(f *os.File) Style {
	live := term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	return Style{Live: live, Colour: live && os.Getenv("NO_COLOR") == ""}
}

// Printer prints to one writer. It is safe for concurrent use.
type Printer struct {
	style Style

	mu      sync.Mutex
	out     io.Writer
	live    string // the redrawn line, which is cleared before every other line
	partial []byte // the incomplete line that Write has received
}

// New makes a printer.
func New(out io.Writer, style Style) *Printer {
	return &Printer{out: out, style: style}
}

// Title starts a section.
func (p *Printer) Title(text string) {
	p.line("\n" + p.paint(bold, text))
}

// Step starts a numbered section.
func (p *Printer) Step(number int, text string) {
	p.line(fmt.Sprintf("\n%s %s", p.paint(green, fmt.Sprintf("%2d", number)), p.paint(bold, text)))
}

// Fact prints a value with its label.
func (p *Printer) Fact(label, format string, args ...any) {
	p.line("   " + p.paint(dim, pad(label)) + fmt.Sprintf(format, args...))
}

// pad pads a label to labelWidth characters, not bytes.
func pad(label string) string {
	return label + strings.Repeat(" ", max(1, labelWidth-len([]rune(label))))
}

// Busy shows the work that the text describes until done is called.
func (p *Printer) Busy(format string, args ...any) (done func()) {
	text, began := fmt.Sprintf(format, args...), time.Now()
	every := redrawEvery
	if !p.style.Live {
		every = remindEvery
	}
	quit, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				p.redraw("")
				return
			case <-tick.C:
				p.showProgress(text, time.Since(began))
			}
		}
	}()
	return sync.OnceFunc(func() { close(quit); <-finished })
}

func (p *Printer) showProgress(text string, elapsed time.Duration) {
	if p.style.Live {
		p.redraw(fmt.Sprintf("   %s … %s", text, p.paint(dim, fmt.Sprintf("%.1f s", elapsed.Seconds()))))
		return
	}
	p.line(fmt.Sprintf("   %s … %.0f s", text, elapsed.Seconds()))
}

// Write prints the complete lines of other programs' output, indented and without empty
// lines. It keeps an incomplete line until the rest is written.
func (p *Printer) Write(b []byte) (int, error) {
	p.mu.Lock()
	p.partial = append(p.partial, b...)
	end := bytes.LastIndexByte(p.partial, '\n')
	var lines []string
	if end >= 0 {
		lines = strings.Split(string(p.partial[:end]), "\n")
		p.partial = p.partial[end+1:]
	}
	p.mu.Unlock()
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			p.line("   " + p.paint(dim, line))
		}
	}
	return len(b), nil
}

func (p *Printer) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live != "" {
		text = clearLine + text
	}
	fmt.Fprintln(p.out, text)
	fmt.Fprint(p.out, p.live)
}

// redraw replaces the live line; with "" it removes it.
func (p *Printer) redraw(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live != "" || text != "" {
		fmt.Fprint(p.out, clearLine+text)
	}
	p.live = text
}

func (p *Printer) paint(colour, text string) string {
	if !p.style.Colour {
		return text
	}
	return colour + text + reset
}

// Lamports formats an amount in groups of three digits: 1 000 000 000 lamports.
func Lamports(amount uint64) string { return Grouped(amount) + " lamports" }

// Grouped formats a number in groups of three digits.
func Grouped(n uint64) string {
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// Seconds formats a duration for a person.
func Seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
