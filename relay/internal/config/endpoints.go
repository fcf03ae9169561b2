package config

import (
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/relaypool/relaypool/relay/commandline"
)

// These are the roles of an endpoint.
const (
	// RoleRead: the endpoint is asked for the newest state.
	RoleRead = "read"
	// RoleSubmit: the endpoint receives transactions, and simulates them.
	RoleSubmit = "submit"
	// RoleArchive: the endpoint is asked first for data that may be old, such as blocks, the
	// histories of accounts, and the statuses of old signatures.
	RoleArchive = "archive"
)

const (
	// onlyEndpoint is the name of the endpoint of --rpc-url.
	onlyEndpoint = "rpc"
	// NoWebSocket in place of a WebSocket URL means that the endpoint has no such URL.
	NoWebSocket = "none"

	maxEndpoints = 16
	// maxRequests is more requests a second than any provider sells.
	maxRequests = 100_000
)

// Endpoint is one Solana RPC endpoint.
type Endpoint struct {
	// Name identifies the endpoint in logs, metrics and /health, which do not contain its
	// URL.
	Name string
	URL  Secret
	// WebSocketURL is the URL for subscriptions. If it is empty, the relay derives it from
	// URL. With NoWebSocket the relay makes no subscriptions at this endpoint.
	WebSocketURL Secret
	// CAFile is the file of the authorities of the endpoint's certificate, for calls and
	// subscriptions; empty for the system's.
	CAFile string
	// Roles are one or more of RoleRead, RoleSubmit and RoleArchive.
	Roles []string
	// RequestsPerSecond is the endpoint's budget for this process; 0 for no limit.
	RequestsPerSecond float64
	// Tip makes the endpoint a lane; nil for an RPC endpoint.
	Tip *Tip
}

// LogValue shows an endpoint without its URLs.
func (e Endpoint) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", e.Name), slog.Any("roles", e.Roles), slog.Float64("requests_per_second", e.RequestsPerSecond))
}

// Load returns the configured endpoints, or every problem with them.
func (r RPC) Load() ([]Endpoint, []error) {
	sources := 0
	for _, text := range []string{r.URL.Reveal(), r.URLFile, r.EndpointsFile} {
		if text != "" {
			sources++
		}
	}
	switch {
	case sources == 0:
		return nil, []error{commandline.Problem("rpc-url", "is missing: give the Solana RPC endpoint, or %s when its URL holds credentials, or %s for several", commandline.Setting("rpc-url-file"), commandline.Setting("rpc-endpoints-file"))}
	case sources > 1:
		return nil, []error{commandline.Problem("rpc-url", "%d of this setting, %s and %s are set: give one", sources, commandline.Setting("rpc-url-file"), commandline.Setting("rpc-endpoints-file"))}
	case r.EndpointsFile != "" && r.CAFile != "":
		return nil, []error{commandline.Problem("rpc-ca-file", "is for a single endpoint: set caFile of each endpoint in the list that needs one")}
	case r.EndpointsFile != "":
		return r.loadList()
	}
	u, err := r.loadURL()
	if err != nil {
		return nil, []error{err}
	}
	if err := checkCAFile("rpc-ca-file", r.CAFile, u); err != nil {
		return nil, []error{err}
	}
	return []Endpoint{{Name: onlyEndpoint, URL: u, CAFile: r.CAFile, Roles: allRoles()}}, nil
}

func allRoles() []string { return []string{RoleRead, RoleSubmit, RoleArchive} }

func (r RPC) loadURL() (Secret, error) {
	flag, text := "rpc-url", r.URL.Reveal()
	if text == "" {
		flag = "rpc-url-file"
		content, err := readFile(flag, r.URLFile, "write the endpoint's URL to a file of mode 0600 and name it")
		if err != nil {
			return Secret{}, err
		}
		text = strings.TrimSpace(string(content))
	}
	u, err := url.Parse(text)
	if err != nil || !isEndpointURL(u, "http", "https") {
		return Secret{}, commandline.Problem(flag, "%d characters that are not the URL of an endpoint: expected http:// or https:// and a host", len(text))
	}
	if flag == "rpc-url" && (u.User != nil || u.RawQuery != "") {
		return Secret{}, commandline.Problem(flag, "the URL holds a user or a query, which may contain credentials: write it to a file of mode 0600 and name that with %s", commandline.Setting("rpc-url-file"))
	}
	return NewSecret(text), nil
}

func isEndpointURL(u *url.URL, schemes ...string) bool {
	return slices.Contains(schemes, u.Scheme) && u.Host != ""
}

// loadList reads the file that lists the endpoints. Any part of the file may be a credential,
// so problems contain only positions and lengths.
func (r RPC) loadList() (endpoints []Endpoint, problems []error) {
	const flag = "rpc-endpoints-file"
	content, err := readFile(flag, r.EndpointsFile, "list the endpoints in it, as relay serve --help says")
	if err != nil {
		return nil, []error{err}
	}
	items, err := parseList(content, "endpoints", maxEndpoints)
	if err != nil {
		return nil, []error{commandline.Problem(flag, "%w", err)}
	}
	seen, roles := map[string]int{}, map[string]bool{}
	for i, item := range items {
		p := endpointParser{itemParser: itemParser{folder: filepath.Dir(r.EndpointsFile)}}
		p.parse(item)
		e := p.endpoint
		if first, twice := seen[e.Name]; twice && e.Name != "" {
			p.fault("name is that of endpoint %d too: expected names that are all different", first)
		}
		seen[e.Name] = i + 1
		for _, role := range e.Roles {
			roles[role] = roles[role] || !e.IsLane()
		}
		for _, fault := range p.faults {
			problems = append(problems, commandline.Problem(flag, "endpoint %d of %d: %w", i+1, len(items), fault))
		}
		endpoints = append(endpoints, e)
	}
	for _, role := range []string{RoleRead, RoleSubmit} {
		if !roles[role] && len(problems) == 0 { // another problem may be the reason for a missing role
			problems = append(problems, commandline.Problem(flag, "no endpoint has the role %s: give it to at least one without a tip", role))
		}
	}
	return endpoints, problems
}

// endpointParser reads one item of the list and collects every fault.
type endpointParser struct {
	itemParser
	endpoint Endpoint
	hasRoles bool
}

// parse reads an endpoint.
func (p *endpointParser) parse(item *yaml.Node) {
	p.what = "endpoint"
	p.itemParser.parse(item, field{"websocketURL", p.webSocketURL}, field{"roles", p.roles}, field{"requestsPerSecond", func(n *yaml.Node) {
		p.endpoint.RequestsPerSecond = p.requestsPerSecond(n)
	}}, field{"tip", p.tip}, field{"caFile", p.caFile})
	p.endpoint.Name, p.endpoint.URL, p.endpoint.CAFile = p.itemName, p.itemURL, p.itemCAFile
	p.checkScheme("url", p.itemURL)
	p.checkScheme("websocketURL", p.endpoint.WebSocketURL)
	if !p.hasRoles {
		p.endpoint.Roles = allRoles()
	}
	if p.endpoint.IsLane() && p.itemName == "rpc" {
		p.fault("name is rpc, which stands for transactions without a tip in figures: expected another one")
	}
	if p.endpoint.IsLane() && !slices.Equal(p.endpoint.Roles, []string{RoleSubmit}) {
		p.fault("it has a tip, so it is sent transactions and asked nothing: set roles to [submit]")
	}
}

func (p *endpointParser) webSocketURL(n *yaml.Node) {
	text, ok := p.text("websocketURL", n)
	if !ok {
		return
	}
	u, err := url.Parse(text)
	if text != NoWebSocket && (err != nil || !isEndpointURL(u, "ws", "wss")) {
		p.fault("websocketURL: %d characters that are not a WebSocket URL: expected ws:// or wss:// and a host, or %s", len(text), NoWebSocket)
		return
	}
	p.endpoint.WebSocketURL = NewSecret(text)
}

func (p *endpointParser) roles(n *yaml.Node) {
	p.hasRoles = true
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.fault("roles is not a list: expected one or more of read, submit, archive, or no roles for all")
		return
	}
	for i, item := range n.Content {
		switch {
		case !slices.Contains(allRoles(), item.Value):
			p.fault("role %d of %d has %d characters: expected read, submit or archive", i+1, len(n.Content), len(item.Value))
		case slices.Contains(p.endpoint.Roles, item.Value):
			p.fault("role %s is there twice", item.Value)
		default:
			p.endpoint.Roles = append(p.endpoint.Roles, item.Value)
		}
	}
}
