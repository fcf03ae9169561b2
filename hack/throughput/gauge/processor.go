// Package gauge reads what a measurement is made of: the processor time that
// each part took, relays' metrics, percentiles.
package gauge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the kernel's unit of processor time in /proc: 100 a second, on every
// architecture that Go knows.
const tick = 10 * time.Millisecond

// Processor is processor time by part, since each part's start.
type Processor struct {
	Relays, Database, Chain, Clients time.Duration
	// Busy is the whole machine's, Total all that it has: of every core.
	Busy, Total time.Duration
}

// Since is the time between two readings.
func (p Processor) Since(before Processor) Processor {
	return Processor{
		Relays: p.Relays - before.Relays, Database: p.Database - before.Database, Chain: p.Chain - before.Chain,
		Clients: p.Clients - before.Clients, Busy: p.Busy - before.Busy, Total: p.Total - before.Total,
	}
}

// Ours is what all parts took together.
func (p Processor) Ours() time.Duration { return p.Relays + p.Database + p.Chain + p.Clients }

// Others is the share of the machine that other programs took, from 0 to 1.
func (p Processor) Others() float64 {
	if p.Total <= 0 {
		return 0
	}
	return max(0, float64(p.Busy-p.Ours())/float64(p.Total))
}

// ReadProcessor reads the processor time of relays, chain and database, the
// last with all its children, and of this process, which plays the clients.
func ReadProcessor(relays []int, chain, database int) (p Processor, err error) {
	for _, pid := range relays {
		s, err := readStat(strconv.Itoa(pid))
		if err != nil {
			return p, err
		}
		p.Relays += s.own
	}
	s, err := readStat(strconv.Itoa(chain))
	if err != nil {
		return p, err
	}
	p.Chain = s.own
	if p.Database, err = family(database); err != nil {
		return p, err
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return p, fmt.Errorf("read own processor time: %w", err)
	}
	p.Clients = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	p.Busy, p.Total, err = machine()
	return p, err
}

// stat is a process's line in /proc.
type stat struct {
	parent int
	// own is its processor time, ended that of children that have been reaped.
	own, ended time.Duration
}

func readStat(pid string) (s stat, err error) {
	text, err := os.ReadFile(filepath.Join("/proc", filepath.Base(pid), "stat"))
	if err != nil {
		return s, fmt.Errorf("read processor time: %w", err)
	}
	// The name, in parentheses, may hold anything.
	end := strings.LastIndexByte(string(text), ')')
	fields := strings.Fields(string(text[end+1:]))
	const parent, user, system, childUser, childSystem = 1, 11, 12, 13, 14
	if end < 0 || len(fields) <= childSystem {
		return s, errors.New("read processor time: /proc is not laid out as expected")
	}
	s.parent, _ = strconv.Atoi(fields[parent]) // the kernel writes numbers
	ticks := func(i int) time.Duration {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		return time.Duration(n) * tick
	}
	s.own, s.ended = ticks(user)+ticks(system), ticks(childUser)+ticks(childSystem)
	return s, nil
}

// family is the processor time of a process and its children, ended ones too.
func family(pid int) (sum time.Duration, err error) {
	s, err := readStat(strconv.Itoa(pid))
	if err != nil {
		return 0, err
	}
	sum = s.own + s.ended
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name[0] >= '0' && name[0] <= '9' {
			// One that has ended meanwhile is counted by its parent.
			if child, err := readStat(name); err == nil && child.parent == pid {
				sum += child.own
			}
		}
	}
	return sum, nil
}

// machine is the busy and the whole processor time of every core.
func machine() (busy, total time.Duration, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("read processor time: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	const idle, wait, guest = 3, 4, 8
	for i, field := range strings.Fields(line)[1:] {
		n, _ := strconv.ParseInt(field, 10, 64)
		if i >= guest {
			break // counted under user already
		}
		total += time.Duration(n) * tick
		if i != idle && i != wait {
			busy += time.Duration(n) * tick
		}
	}
	return busy, total, nil
}

// Load is the machine's load average over the last minute.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
