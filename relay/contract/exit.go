package contract

// Exit codes of relay sweep, in addition to those of every command.
const (
	// ExitUnfinished: the sweep's time was over, or a signal stopped it. The next run continues.
	ExitUnfinished = 3
	// ExitShort: lamports are missing, and the person who runs it has to send some.
	ExitShort = 4
)
