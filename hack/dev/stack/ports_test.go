package stack

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestPorts(t *testing.T) {
	t.Parallel()
	chosen, err := Ports{}.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ports := map[int]bool{chosen.Relay: true, chosen.Operations: true, chosen.Chain: true, chosen.Router: true, chosen.Admin: true}
	if len(ports) != 5 || ports[0] {
		t.Errorf("chose %+v, want five different ports", chosen)
	}
	for port := range ports {
		if port >= 32768 {
			t.Errorf("chose %d, which the kernel may give to somebody else before the program listens", port)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	taken := l.Addr().(*net.TCPAddr).Port
	_, err = Ports{Operations: taken}.Claim(t.Context())
	want := fmt.Sprintf("port %d of the relay's operations is taken: stop what listens there (an earlier make run?) or choose another port with make run ARGS=--operations-port=%d", taken, taken+1)
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := (Ports{Chain: 1 << 20}).Claim(t.Context()); err == nil || !strings.Contains(err.Error(), "open port 1048576 of the local chain") {
		t.Errorf("a port that is none: error %v", err)
	}
}
