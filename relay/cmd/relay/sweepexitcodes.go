package main

import (
	"errors"
	"fmt"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/sweep"
)

// Exit codes of relay sweep, in addition to those of every command.
const (
	exitUnfinished = contract.ExitUnfinished
	exitShort      = contract.ExitShort
)

// exitError is an error with an exit code.
type exitError struct {
	error
	code int
}

// Unwrap returns the error.
func (e *exitError) Unwrap() error { return e.error }

// ExitCode implements commandline.Coded.
func (e *exitError) ExitCode() int { return e.code }

// withCode adds exit codes to a sweep's errors.
func withCode(err error) error {
	var unfinished *sweep.Unfinished
	var short *sweep.Short
	switch {
	case errors.As(err, &unfinished):
		return &exitError{err, exitUnfinished}
	case errors.As(err, &short):
		return &exitError{err, exitShort}
	case store.Unmigrated(err):
		return fmt.Errorf("the database's schema is older than this release: run relay migrate: %w", err)
	default:
		return err
	}
}
