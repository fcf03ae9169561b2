package cafile

import "log/slog"

// LogChanges returns an Options.Changed that logs with the arguments, which say whose file it is.
func LogChanges(log *slog.Logger, args ...any) func(error) {
	log = log.With(args...)
	return func(err error) {
		if err != nil {
			log.Warn("ca file not readable; its last authorities stay trusted", "error", err)
			return
		}
		log.Info("ca file read again")
	}
}
