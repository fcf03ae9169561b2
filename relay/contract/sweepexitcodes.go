package contract

// Exit codes of `relay sweep`, in addition to those of every command.
const (
	// ExitUnfinished: the sweep's time was over, or a signal stopped it. The next run continues.
	ExitUnfinished = 3
	// ExitShort: a key has too few lamports, and a person has to send it some.
	ExitShort = 4
)
