package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/relaypool/relaypool/relay/commandline"
)

// These are the roles of an endpoint.
const (
	// RoleRead answers the relay's reads of the newest state.
	RoleRead = "read"
	// RoleSubmit receives transactions, and simulates them.
	RoleSubmit = "submit"
	// RoleArchive is asked first for data that may be old: blocks, histories, lost signatures.
	RoleArchive = "archive"
)

const (
	// onlyEndpoint names the endpoint of --rpc-url.
	onlyEndpoint = "rpc"
	// NoWebSocket as an endpoint's WebSocket URL means that it has none.
	NoWebSocket = "none"

	maxEndpoints = 16
	// maxRequests is more requests a second than any provider sells.
	maxRequests = 100_000
)

// endpointName is the pattern of an endpoint's name for logs, metrics and /health: short,
// and never a URL.
var endpointName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// Endpoint is one Solana RPC endpoint.
type Endpoint struct {
	// Name identifies the endpoint in logs, metrics and /health, which do not contain its
	// URL.
	Name string
	URL  Secret
	// WebSocketURL is the URL for subscriptions. Empty derives it from URL; NoWebSocket
	// means none.
	WebSocketURL Secret
	// Roles are one or more of RoleRead, RoleSubmit and RoleArchive.
	Roles []string
	// RequestsPerSecond is the endpoint's budget for this process; 0 for no limit.
	RequestsPerSecond float64
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
	case r.EndpointsFile != "":
		return r.loadList()
	}
	u, err := r.loadURL()
	if err != nil {
		return nil, []error{err}
	}
	return []Endpoint{{Name: onlyEndpoint, URL: u, Roles: allRoles()}}, nil
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
		return Secret{}, commandline.Problem(flag, "%d characters that are no URL of an endpoint: expected http:// or https:// and a host", len(text))
	}
	if flag == "rpc-url" && (u.User != nil || u.RawQuery != "") {
		return Secret{}, commandline.Problem(flag, "the URL holds a user or a query, which may contain credentials: write it to a file of mode 0600 and name that with %s", commandline.Setting("rpc-url-file"))
	}
	return NewSecret(text), nil
}

func isEndpointURL(u *url.URL, schemes ...string) bool {
	return slices.Contains(schemes, u.Scheme) && u.Host != ""
}

// loadList reads the endpoints' file. Any part of it may be a credential, so problems name
// only places and lengths.
func (r RPC) loadList() (endpoints []Endpoint, problems []error) {
	const flag = "rpc-endpoints-file"
	content, err := readFile(flag, r.EndpointsFile, "list the endpoints in it, as relay serve --help says")
	if err != nil {
		return nil, []error{err}
	}
	items, err := parseList(content)
	if err != nil {
		return nil, []error{commandline.Problem(flag, "%w", err)}
	}
	seen, roles := map[string]int{}, map[string]bool{}
	for i, item := range items {
		p := endpointParser{folder: filepath.Dir(r.EndpointsFile)}
		p.parse(item)
		e := p.endpoint
		if first, twice := seen[e.Name]; twice && e.Name != "" {
			p.fault("name is that of endpoint %d too: expected names that are all different", first)
		}
		seen[e.Name] = i + 1
		for _, role := range e.Roles {
			roles[role] = true
		}
		for _, fault := range p.faults {
			problems = append(problems, commandline.Problem(flag, "endpoint %d of %d: %w", i+1, len(items), fault))
		}
		endpoints = append(endpoints, e)
	}
	for _, role := range []string{RoleRead, RoleSubmit} {
		if !roles[role] && len(problems) == 0 { // another problem may be the reason for a missing role
			problems = append(problems, commandline.Problem(flag, "no endpoint has the role %s: give it to at least one", role))
		}
	}
	return endpoints, problems
}

// parseList returns the list's items. The parser's errors repeat the content, so they are
// dropped.
func parseList(content []byte) ([]*yaml.Node, error) {
	content = jsonAsYAML(content)
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&doc); err != nil {
		return nil, fmt.Errorf("its content of %d bytes is neither YAML nor JSON", len(content))
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("it holds more than one document: expected one list of endpoints")
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.SequenceNode {
		return nil, errors.New("it holds no list: expected a list of endpoints, each with a name and a url or urlFile")
	}
	items := doc.Content[0].Content
	if len(items) == 0 || len(items) > maxEndpoints {
		return nil, fmt.Errorf("it lists %d endpoints: expected 1 to %d", len(items), maxEndpoints)
	}
	return items, nil
}

// jsonAsYAML removes tabs and escaped slashes from JSON, which otherwise is YAML. It does
// not change other content.
func jsonAsYAML(content []byte) []byte {
	var compact bytes.Buffer
	if json.Compact(&compact, content) != nil {
		return content
	}
	// An escape is two bytes long, so the second of two backslashes starts no escape.
	return regexp.MustCompile(`\\.`).ReplaceAllFunc(compact.Bytes(), func(escape []byte) []byte {
		if escape[1] == '/' {
			return escape[1:]
		}
		return escape
	})
}

// endpointParser reads one item of the list and collects every fault.
type endpointParser struct {
	// folder is the base of relative paths: the folder of the list.
	folder   string
	endpoint Endpoint
	faults   []error
	hasURL   bool
	hasRoles bool
}

func (p *endpointParser) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf(format, args...))
}

func (p *endpointParser) parse(item *yaml.Node) {
	if item.Kind != yaml.MappingNode {
		p.fault("expected keys and values: name, url or urlFile, websocketURL, roles, requestsPerSecond")
		return
	}
	fields := map[string]func(*yaml.Node){
		"name": p.name, "url": p.url, "urlFile": p.urlFile, "websocketURL": p.webSocketURL,
		"roles": p.roles, "requestsPerSecond": p.requestsPerSecond,
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(item.Content); i += 2 {
		key := item.Content[i].Value
		read, known := fields[key]
		switch {
		case !known:
			p.fault("a key of %d characters is not known: expected name, url, urlFile, websocketURL, roles, requestsPerSecond", len(key))
		case seen[key]:
			p.fault("%s is there twice", key)
		default:
			read(item.Content[i+1])
		}
		seen[key] = true
	}
	if !seen["name"] {
		p.fault("name is missing: it stands for the endpoint in logs, metrics and /health")
	}
	if !seen["url"] && !seen["urlFile"] {
		p.fault("url is missing: give it, or urlFile to name a file that holds it")
	}
	if !p.hasRoles {
		p.endpoint.Roles = allRoles()
	}
}

// text returns a scalar value; ok is false when the node has none.
func (p *endpointParser) text(key string, n *yaml.Node) (text string, ok bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || strings.TrimSpace(n.Value) == "" {
		p.fault("%s is no text", key)
		return "", false
	}
	return strings.TrimSpace(n.Value), true
}

func (p *endpointParser) name(n *yaml.Node) {
	text, ok := p.text("name", n)
	if !ok {
		return
	}
	if !endpointName.MatchString(text) {
		p.fault("name of %d characters: expected 1 to 32 lower-case letters, digits and hyphens between them", len(text))
		return
	}
	p.endpoint.Name = text
}

func (p *endpointParser) url(n *yaml.Node) {
	if text, ok := p.text("url", n); ok {
		p.setURL("url", text)
	}
}

func (p *endpointParser) urlFile(n *yaml.Node) {
	path, ok := p.text("urlFile", n)
	if !ok {
		return
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.folder, path)
	}
	content, err := readContent(path)
	if err != nil {
		p.fault("urlFile: %w", err)
		return
	}
	p.setURL("urlFile", content)
}

func (p *endpointParser) setURL(key, text string) {
	if p.hasURL {
		p.fault("url and urlFile are both set: give one")
		return
	}
	p.hasURL = true
	u, err := url.Parse(text)
	if err != nil || !isEndpointURL(u, "http", "https") {
		p.fault("%s: %d characters that are no URL of an endpoint: expected http:// or https:// and a host", key, len(text))
		return
	}
	p.endpoint.URL = NewSecret(text)
}

func (p *endpointParser) webSocketURL(n *yaml.Node) {
	text, ok := p.text("websocketURL", n)
	if !ok {
		return
	}
	u, err := url.Parse(text)
	if text != NoWebSocket && (err != nil || !isEndpointURL(u, "ws", "wss")) {
		p.fault("websocketURL: %d characters that are no WebSocket URL: expected ws:// or wss:// and a host, or %s", len(text), NoWebSocket)
		return
	}
	p.endpoint.WebSocketURL = NewSecret(text)
}

func (p *endpointParser) roles(n *yaml.Node) {
	p.hasRoles = true
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.fault("roles is no list: expected one or more of read, submit, archive, or no roles for all")
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

func (p *endpointParser) requestsPerSecond(n *yaml.Node) {
	rate, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(rate >= 0 && rate <= maxRequests) { // NaN fails both comparisons
		p.fault("requestsPerSecond: expected a number from 0, for no limit, to %d", maxRequests)
		return
	}
	p.endpoint.RequestsPerSecond = rate
}
