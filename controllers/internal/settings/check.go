package settings

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
)

// None is the address that turns a server off.
const None = "none"

const (
	maxConcurrency = 256
	maxImage       = 512 // the same limit as for spec.image
	maxPort        = 1<<16 - 1
)

// CheckImage returns what is wrong with the name of the relay's image.
func CheckImage(image string) []error {
	switch {
	case image == "":
		return []error{commandline.Problem("relay-image", "is missing: name the relay's image, such as registry.example/relaypool/relay:%s", contract.Version)}
	case len(image) > maxImage, strings.ContainsFunc(image, unicode.IsSpace):
		return []error{commandline.Problem("relay-image", "expected at most %d characters without white space, such as registry.example/relaypool/relay:%s, received %d", maxImage, contract.Version, len(image))}
	}
	return nil
}

func (c *Config) checkNamespaces() (problems []error) {
	report := func(flag, format string, args ...any) {
		problems = append(problems, commandline.Problem(flag, format, args...))
	}
	for i, name := range c.Namespaces {
		if len(validation.IsDNS1123Label(name)) > 0 {
			report("namespaces", "name %d of %d: expected a namespace of at most 63 lower-case letters, digits and hyphens, received %d characters of another form", i+1, len(c.Namespaces), len(name))
		} else if slices.Contains(c.Namespaces[:i], name) {
			report("namespaces", "name %d of %d is there twice: leave one out", i+1, len(c.Namespaces))
		}
	}
	switch {
	case len(c.Namespaces) == 0 && !c.ClusterWide:
		report("namespaces", "is missing: name the namespaces whose RelayPools the operator manages, or give %s for the whole cluster, which needs the rights of an administrator", commandline.Setting("cluster-wide"))
	case len(c.Namespaces) > 0 && c.ClusterWide:
		report("cluster-wide", "is set, and %s names %d namespaces: leave one of the two settings out", commandline.Setting("namespaces"), len(c.Namespaces))
	}
	switch {
	case c.OperatorNamespace == "" && c.LeaderElect:
		report("operator-namespace", "is missing: outside a cluster, name the namespace that the operator is installed in (%s with our manifests), so that only one operator acts, or give --leader-elect=false if there is no other", contract.OperatorSystemNamespace)
	case c.OperatorNamespace != "" && len(validation.IsDNS1123Label(c.OperatorNamespace)) > 0:
		report("operator-namespace", "expected a namespace of at most 63 lower-case letters, digits and hyphens, received %d characters of another form", len(c.OperatorNamespace))
	}
	return problems
}

func (w Work) check() (problems []error) {
	report := func(flag, format string, args ...any) {
		problems = append(problems, commandline.Problem(flag, format, args...))
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"concurrent-reconciles", w.ConcurrentReconciles}, {"check-workers", w.CheckWorkers}} {
		if n.value < 1 || n.value > maxConcurrency {
			report(n.flag, "expected 1 to %d, received %d", maxConcurrency, n.value)
		}
	}
	for _, d := range []struct {
		flag            string
		value, min, max time.Duration
	}{
		{"refs-interval", w.RefsInterval, time.Second, time.Hour},
		{"resync", w.Resync, 10 * time.Second, 7 * 24 * time.Hour},
	} {
		if d.value < d.min || d.value > d.max {
			report(d.flag, "expected %s to %s, received %s", d.min, d.max, d.value)
		}
	}
	return problems
}

func (l Listening) check() (problems []error) {
	report := func(flag, format string, args ...any) {
		problems = append(problems, commandline.Problem(flag, format, args...))
	}
	for _, a := range []struct {
		flag, address string
		port          int
	}{{"metrics-listen", l.MetricsListen, contract.OperatorMetricsPort}, {"health-listen", l.HealthListen, contract.OperatorHealthPort}} {
		if a.address != None && !isAddress(a.address) {
			report(a.flag, "expected host:port, such as 127.0.0.1:%d, or %s, received %d characters of another form", a.port, None, len(a.address))
		}
	}
	if l.MetricsListen == l.HealthListen && l.MetricsListen != None && !strings.HasSuffix(l.MetricsListen, ":0") {
		report("health-listen", "is the same address as %s: probes need one of their own", commandline.Setting("metrics-listen"))
	}
	if l.MetricsCertDir != "" {
		for _, file := range []string{"tls.crt", "tls.key"} {
			if _, err := os.Stat(filepath.Join(l.MetricsCertDir, file)); err != nil {
				report("metrics-cert-dir", "the folder has no %s that can be read: put certificate and key there as tls.crt and tls.key, or leave the flag out for a self-signed pair", file)
			}
		}
		if l.Loopback() {
			report("metrics-cert-dir", "is set, but %s is a loopback address, which is served without TLS: leave one out", commandline.Setting("metrics-listen"))
		}
	}
	return problems
}

// checkExternal checks the settings of external metrics, unless external metrics are off.
func (c *Config) checkExternal() (problems []error) {
	e, l := c.External, c.Listening
	if !e.Enabled() {
		return nil
	}
	report := func(flag, format string, args ...any) {
		problems = append(problems, commandline.Problem(flag, format, args...))
	}
	if !isAddress(e.Listen) {
		report("external-metrics-listen", "expected host:port, such as :%d, or %s, received %d characters of another form", contract.OperatorExternalMetricsPort, None, len(e.Listen))
	}
	for _, other := range []struct{ flag, address string }{{"metrics-listen", l.MetricsListen}, {"health-listen", l.HealthListen}} {
		if other.address == e.Listen && !strings.HasSuffix(e.Listen, ":0") {
			report("external-metrics-listen", "is the same address as %s: each needs one of its own", commandline.Setting(other.flag))
		}
	}
	if c.OperatorNamespace == "" {
		report("external-metrics-listen", "is set, and %s is not: the certificate's Secret and the Service are in that namespace", commandline.Setting("operator-namespace"))
	}
	if len(validation.IsDNS1035Label(e.Service)) > 0 {
		report("external-metrics-service", "expected the name of a Service, such as %s, received %d characters of another form", contract.OperatorExternalMetrics, len(e.Service))
	}
	if len(validation.IsDNS1123Subdomain(e.Secret)) > 0 {
		report("external-metrics-secret", "expected the name of a Secret, such as %s, received %d characters of another form", contract.OperatorExternalMetrics, len(e.Secret))
	}
	return problems
}

// Loopback reports whether metrics are served to this machine alone.
func (l Listening) Loopback() bool {
	host, _, err := net.SplitHostPort(l.MetricsListen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func isAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 0 && n <= maxPort
}

func (l Leading) check() (problems []error) {
	report := func(flag, format string, args ...any) {
		problems = append(problems, commandline.Problem(flag, format, args...))
	}
	if len(validation.IsDNS1123Subdomain(l.Name)) > 0 {
		report("lease-name", "expected lower-case letters, digits, hyphens and dots, such as %s, received %d characters of another form", contract.OperatorLease, len(l.Name))
	}
	if l.Duration < time.Second || l.Duration > time.Hour || l.Duration%time.Second != 0 {
		report("lease-duration", "expected whole seconds, 1s to 1h, received %s", l.Duration)
	}
	if l.RenewDeadline <= 0 || l.RenewDeadline >= l.Duration {
		report("lease-renew-deadline", "expected less than %s, which is %s, and more than 0s, received %s: a leader has to give up before another takes over", commandline.Setting("lease-duration"), l.Duration, l.RenewDeadline)
	}
	if limit := time.Duration(float64(l.RenewDeadline) / leaderelection.JitterFactor); l.RetryPeriod <= 0 || l.RetryPeriod >= limit {
		report("lease-retry-period", "expected more than 0s and less than %s, which is %s less its jitter, received %s", limit, commandline.Setting("lease-renew-deadline"), l.RetryPeriod)
	}
	return problems
}

// Check returns what is wrong with the flags of the log.
func (l Logging) Check() (problems []error) {
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, l.Level) {
		problems = append(problems, commandline.Problem("log-level", "expected debug, info, warn or error, received another value of %d characters", len(l.Level)))
	}
	if !slices.Contains([]string{"auto", "json", "text"}, l.Format) {
		problems = append(problems, commandline.Problem("log-format", "expected auto, json or text, received another value of %d characters", len(l.Format)))
	}
	return problems
}
