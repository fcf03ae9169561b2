package stand

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/relaypool/relaypool/hack/freeport"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/hack/sandbox"
)

// ErrNoNginx reports that nginx is not installed.
var ErrNoNginx = errors.New("nginx is not installed")

const nginxGrace = 5 * time.Second

// nginxConfig serves a folder's files: Debian's settings, without a log.
const nginxConfig = `daemon off; user root; worker_processes auto; pid %[1]s/nginx.pid; error_log stderr;
events { worker_connections 768; }
http { access_log off; sendfile on; tcp_nopush on; etag on; keepalive_requests 100000000; server { listen %[2]s; root %[1]s; } }
`

// Nginx serves the files of a folder.
type Nginx struct {
	URL     string
	process *process.Process
}

// StartNginx serves a folder, or fails with ErrNoNginx.
func StartNginx(ctx context.Context, folder string) (*Nginx, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, ErrNoNginx
		}
	}
	free, err := freeport.Find(ctx, 1)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nginxConfig, folder, free[0]), 0o600); err != nil {
		return nil, fmt.Errorf("configure nginx: %w", err)
	}
	n := &Nginx{URL: "http://" + free[0]}
	if n.process, err = process.Start("nginx", filepath.Join(folder, "nginx.log"), program, "-c", config); err != nil {
		return nil, err
	}
	err = sandbox.Await(ctx, n.process, func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", free[0])
		if err != nil {
			return err
		}
		return c.Close()
	})
	if err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// Stop ends nginx with its workers, which a kill would leave behind.
func (n *Nginx) Stop() error { return n.process.Stop(nginxGrace) }
