package config

import (
	"math"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/relaypool/relaypool/relay/commandline"
)

// PreferredRouter is the name of the router of --router-url in logs and metrics.
const PreferredRouter = "preferred"

// maxFallbacks is the largest number of fallback routers. It is small, because the relay asks the
// routers one after another, and a swap has only about 40 seconds.
const maxFallbacks = 4

// SwapRouter is one swap router.
type SwapRouter struct {
	// Name identifies the router in logs and metrics, which do not contain its URL.
	Name string
	// URL begins with http:// or https:// and has a host. APIKey is empty if the router needs
	// no key.
	URL, APIKey Secret
	// CAFile is the file of the authorities of the router's certificate; empty for the system's.
	CAFile string
	// RequestsPerSecond is the router's budget, which all processes on the database share; 0
	// for no limit.
	RequestsPerSecond int
}

// loadFallbacks reads the file that lists the fallback routers, and keeps their order. Any
// part of the file may be a credential, so problems contain only positions and lengths.
func (r Router) loadFallbacks() (routers []SwapRouter, problems []error) {
	const flag = "router-fallbacks-file"
	if r.FallbacksFile == "" {
		return nil, nil
	}
	content, err := readFile(flag, r.FallbacksFile, "list the routers in it, as relay serve --help says")
	if err != nil {
		return nil, []error{err}
	}
	items, err := parseList(content, "routers", maxFallbacks)
	if err != nil {
		return nil, []error{commandline.Problem(flag, "%w", err)}
	}
	seen := map[string]bool{PreferredRouter: true}
	for i, item := range items {
		p := routerParser{itemParser: itemParser{folder: filepath.Dir(r.FallbacksFile), what: "router"}}
		p.parse(item, field{"apiKeyFile", p.apiKeyFile}, field{"requestsPerSecond", p.wholeRequestsPerSecond}, field{"caFile", p.caFile})
		p.router.Name, p.router.URL, p.router.CAFile = p.itemName, p.itemURL, p.itemCAFile
		p.checkScheme("url", p.itemURL)
		if seen[p.router.Name] {
			p.fault("name is that of another router, or %s, which is the router of %s: expected names that are all different", PreferredRouter, commandline.Setting("router-url"))
		}
		seen[p.router.Name] = p.router.Name != ""
		for _, fault := range p.faults {
			problems = append(problems, commandline.Problem(flag, "router %d of %d: %w", i+1, len(items), fault))
		}
		routers = append(routers, p.router)
	}
	return routers, problems
}

// routerParser reads one item of the list of routers.
type routerParser struct {
	itemParser
	router SwapRouter
}

func (p *routerParser) apiKeyFile(n *yaml.Node) {
	content, ok := p.fileContent("apiKeyFile", n)
	if !ok {
		return
	}
	key, err := apiKey(content)
	if err != nil {
		p.fault("apiKeyFile: %w", err)
	}
	p.router.APIKey = key
}

// wholeRequestsPerSecond reads a rate, which has to be a whole number, because the budget
// counts calls.
func (p *routerParser) wholeRequestsPerSecond(n *yaml.Node) {
	rate := p.requestsPerSecond(n)
	if rate != math.Trunc(rate) {
		p.fault("requestsPerSecond: expected a whole number, received a fraction")
	}
	p.router.RequestsPerSecond = int(rate)
}
