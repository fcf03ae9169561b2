// Package gauge reads the figures of a measurement: each part's processor time,
// the relays' metrics, percentiles.
package gauge

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// Processor is the processor time of each part since the part's start.
type Processor struct {
	Relays, Database time.Duration
	// Clients is the time of this process, which also runs the chain.
	Clients time.Duration
	// Busy is the used processor time of all cores; Total includes idle time.
	Busy, Total time.Duration
}

// Since returns the times used since an earlier reading.
func (p Processor) Since(before Processor) Processor {
	return Processor{
		Relays: p.Relays - before.Relays, Database: p.Database - before.Database,
		Clients: p.Clients - before.Clients, Busy: p.Busy - before.Busy, Total: p.Total - before.Total,
	}
}

// Own returns the sum of the parts.
func (p Processor) Own() time.Duration { return p.Relays + p.Database + p.Clients }

// Others returns the share of the machine that other programs took, from 0 to 1.
func (p Processor) Others() float64 {
	if p.Total <= 0 {
		return 0
	}
	return max(0, float64(p.Busy-p.Own())/float64(p.Total))
}

// Tick is the kernel's unit of processor time in /proc: a hundredth of a second
// on every architecture that Go supports.
const Tick = 10 * time.Millisecond

// OwnMemory reads how many bytes of a process's resident memory are not pages of files.
func OwnMemory(pid int) (float64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	status, err := p.NewStatus()
	return float64(status.RssAnon), err
}

// ReadProcessor reads the processor time of the relays, of the database with all
// its children, running or ended, and of this process.
func ReadProcessor(relays []int, database int) (p Processor, err error) {
	proc, err := procfs.NewFS(procfs.DefaultMountPoint)
	if err != nil {
		return p, fmt.Errorf("read processor time: %w", err)
	}
	for _, pid := range relays {
		own, _, err := processTime(proc, pid)
		if err != nil {
			return p, err
		}
		p.Relays += own
	}
	own, ended, err := processTime(proc, database)
	if err != nil {
		return p, err
	}
	p.Database = own + ended
	all, err := proc.AllProcs()
	if err != nil {
		return p, fmt.Errorf("read processor time: %w", err)
	}
	for _, process := range all {
		// A child that has ended meanwhile counts with the parent's ended children.
		if stat, err := process.Stat(); err == nil && stat.PPID == database {
			p.Database += time.Duration(stat.UTime+stat.STime) * Tick //nolint:gosec // far below 2^63
		}
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return p, fmt.Errorf("read own processor time: %w", err)
	}
	p.Clients = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	machine, err := proc.Stat()
	if err != nil {
		return p, fmt.Errorf("read processor time: %w", err)
	}
	c := machine.CPUTotal // guests are counted under user
	busy := c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal
	p.Busy, p.Total = seconds(busy), seconds(busy+c.Idle+c.Iowait)
	return p, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// processTime returns a process's own time and the time of its ended children.
func processTime(proc procfs.FS, pid int) (own, ended time.Duration, err error) {
	process, err := proc.Proc(pid)
	if err != nil {
		return 0, 0, fmt.Errorf("read processor time: %w", err)
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, 0, fmt.Errorf("read processor time: %w", err)
	}
	return time.Duration(stat.UTime+stat.STime) * Tick, time.Duration(stat.CUTime+stat.CSTime) * Tick, nil //nolint:gosec // far below 2^63
}

// Load returns the machine's load average over the last minute.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
