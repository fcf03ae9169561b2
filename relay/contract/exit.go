package contract

// Exit codes of relay sweep, beside those of every command.
const (
	// ExitUnfinished: its time was over, or it was told to stop. Run again, it goes on.
	ExitUnfinished = 3
	// ExitShort: lamports are missing, and whoever runs it has to send some.
	ExitShort = 4
)
