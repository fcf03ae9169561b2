package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-chi/httprate"
)

// clientAddress is the address by which a client is counted. For IPv6 it is the /64
// network, because one client can use all addresses of such a network.
func (a *api) clientAddress(r *http.Request) string {
	return httprate.CanonicalizeIP(clientIP(r, a.ClientIPHeader))
}

// clientIP returns the last address in the header. The nearest proxy wrote that one, while the
// client itself may have sent the addresses before it. Without a valid header, clientIP returns
// the peer's address.
func clientIP(r *http.Request, header string) string {
	if header != "" {
		if lines := r.Header.Values(header); len(lines) > 0 {
			line := lines[len(lines)-1]
			last := strings.TrimSpace(line[strings.LastIndexByte(line, ',')+1:])
			const longest = 64 // more than an IPv6 address with its zone
			if ip, err := netip.ParseAddr(last[:min(len(last), longest)]); err == nil {
				return ip.Unmap().WithZone("").String()
			}
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
