package httpapi

import (
	"context"
	"log"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/relaypool/relaypool/relay/contract"
)

const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// sendBuffer is the size in bytes of a connection's send buffer in the kernel.
	// The kernel's default grows to several megabytes for each stalled reader, and that
	// counts as the pod's memory.
	sendBuffer = 256 << 10
	// maxHeader is the largest size of a request's headers in bytes.
	maxHeader = 16 << 10
)

// NewServer makes a server for the handler. longest is the longest time that the handler may
// take: for the API, Options.CallTimeout and Options.WaitMax together. The write timeout is
// longer, so that a client that waits for an outcome is not cut off.
func NewServer(addr string, handler http.Handler, longest time.Duration, l *slog.Logger) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      longest + contract.TransferTime,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       limitSendBuffer,
		// OPTIONS * is answered like any unknown path.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(newErrorLog(l), "", 0),
	}
}

func limitSendBuffer(ctx context.Context, c net.Conn) context.Context {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // an error means a closed connection, which the first read reports too
	}
	return ctx
}

// errorLog logs net/http's own error messages, without the client addresses and panic
// values that they contain.
type errorLog struct {
	log     *slog.Logger
	address *regexp.Regexp
}

func newErrorLog(l *slog.Logger) *errorLog {
	return &errorLog{log: l, address: regexp.MustCompile(`\[?[0-9a-fA-F.:]*[.:][0-9a-fA-F.:]*(%\w+)?\]?:\d{1,5}`)}
}

// Write logs one message.
func (e *errorLog) Write(p []byte) (int, error) {
	text, _, _ := strings.Cut(strings.TrimSpace(string(p)), "\n")
	if strings.HasPrefix(text, "http: panic serving") {
		text = "http: panic outside the API's own recovery"
	}
	e.log.LogAttrs(context.Background(), slog.LevelWarn, "HTTP server error",
		slog.String("complaint", e.address.ReplaceAllString(text, "(address)")))
	return len(p), nil
}
