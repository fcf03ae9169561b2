package apiservertest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/hack/apiserver"
)

// abandonVariable makes the test binary start a server and wait for its death.
const abandonVariable = "RELAYPOOL_TEST_ABANDON"

func abandon() {
	server, err := apiserver.Start(context.Background(), apiserver.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(server.Dir())
	select {}
}

// A test that is killed, by its timeout for example, cannot stop its server.
func TestServersEndWithAKilledTest(t *testing.T) {
	t.Parallel()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), executable)
	cmd.Env = append(os.Environ(), abandonVariable+"=1")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(errors.Join(err, cmd.Wait()))
	}
	dir = strings.TrimSpace(dir)
	defer func() { _ = os.RemoveAll(dir) }()
	if got := serversIn(t, dir); len(got) != 2 {
		t.Errorf("%v run in the server's folder, expected etcd and kube-apiserver", got)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as it says
	eventually(t, func(context.Context) error {
		if got := serversIn(t, dir); len(got) > 0 {
			return fmt.Errorf("%v still run", got)
		}
		return nil
	})
}

// serversIn lists the processes that work in the folder.
func serversIn(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && cwd == dir {
			found = append(found, filepath.Dir(link))
		}
	}
	return found
}
