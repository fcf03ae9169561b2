package manager

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/relaypool/relaypool/controllers/internal/settings"
)

// NewLog makes the process' log as settings.Logging describes.
func NewLog(w io.Writer, l settings.Logging) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return nil, fmt.Errorf("log level of %d characters is not known: expected debug, info, warn or error", len(l.Level))
	}
	o := &slog.HandlerOptions{Level: level}
	switch l.Format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "auto":
		if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return slog.New(slog.NewTextHandler(w, o)), nil
		}
		return slog.New(slog.NewJSONHandler(w, o)), nil
	default:
		return nil, fmt.Errorf("log format of %d characters is not known: expected auto, json or text", len(l.Format))
	}
}

// Redirect sends the log lines of libraries to the process' own log. The libraries keep their
// loggers in package variables, so the change affects the whole process. Only a main function
// should call Redirect, and only once.
func Redirect(log *slog.Logger) {
	handler := log.Handler()
	ctrl.SetLogger(logr.FromSlogHandler(handler))
	klog.SetLogger(logr.FromSlogHandler(handler))
}
