package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// namePattern matches the names of endpoints and routers. Logs, metrics and /health contain
// the name in place of the URL, so a name is short and cannot be a URL.
var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// parseList returns the items of a list in YAML or JSON. It drops the parser's errors, because
// they repeat the content, which may contain credentials.
func parseList(content []byte, what string, most int) ([]*yaml.Node, error) {
	content = jsonAsYAML(content)
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&doc); err != nil {
		return nil, fmt.Errorf("its content of %d bytes is neither YAML nor JSON", len(content))
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it holds more than one document: expected one list of %s", what)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("it holds no list: expected a list of %s, each with a name", what)
	}
	items := doc.Content[0].Content
	if len(items) == 0 || len(items) > most {
		return nil, fmt.Errorf("it lists %d %s: expected 1 to %d", len(items), what, most)
	}
	return items, nil
}

// jsonAsYAML makes JSON fit for the YAML parser, which refuses tabs and escaped slashes. It
// does not change content that is not JSON.
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

// itemParser reads one item of a list and collects every fault.
type itemParser struct {
	// folder is the base of relative paths: the folder of the list.
	folder string
	// what names the kind of item in faults.
	what   string
	faults []error
	// itemName and itemURL are the values that an item of every kind has.
	itemName string
	itemURL  Secret
	hasURL   bool
	// itemCAFile is the value that endpoints and routers may have.
	itemCAFile string
}

// field is a key of an item, with the function that reads the key's value.
type field struct {
	key  string
	read func(*yaml.Node)
}

func (p *itemParser) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf(format, args...))
}

// parse reads the name and the URL of an item, and ownFields, which only items of this kind
// have.
func (p *itemParser) parse(item *yaml.Node, ownFields ...field) {
	fields := append([]field{{"name", p.name}, {"url", p.url}, {"urlFile", p.urlFile}}, ownFields...)
	if item.Kind != yaml.MappingNode {
		p.fault("expected keys and values: name, url or urlFile, %s", keysOf(ownFields))
		return
	}
	seen := p.readFields("", item, fields)
	if !seen["name"] {
		p.fault("name is missing: it stands for the %s in logs and metrics", p.what)
	}
	if !seen["url"] && !seen["urlFile"] {
		p.fault("url is missing: give it, or urlFile to name a file that holds it")
	}
}

// readFields reads the keys and values of a mapping, and returns which keys it has. prefix begins
// the faults.
func (p *itemParser) readFields(prefix string, item *yaml.Node, fields []field) (seen map[string]bool) {
	read := map[string]func(*yaml.Node){}
	for _, f := range fields {
		read[f.key] = f.read
	}
	seen = map[string]bool{}
	for i := 0; i+1 < len(item.Content); i += 2 {
		key := item.Content[i].Value
		switch {
		case read[key] == nil:
			p.fault("%sa key of %d characters is not known: expected %s", prefix, len(key), keysOf(fields))
		case seen[key]:
			p.fault("%s%s is there twice", prefix, key)
		default:
			read[key](item.Content[i+1])
		}
		seen[key] = true
	}
	return seen
}

// requireFields is readFields for a node that must be a mapping with the required keys.
func (p *itemParser) requireFields(prefix string, item *yaml.Node, required []string, fields ...field) {
	if item.Kind != yaml.MappingNode {
		p.fault("%sexpected keys and values: %s", prefix, keysOf(fields))
		return
	}
	seen := p.readFields(prefix, item, fields)
	for _, key := range required {
		if !seen[key] {
			p.fault("%s%s is missing", prefix, key)
		}
	}
}

func keysOf(fields []field) string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return strings.Join(keys, ", ")
}

// text returns the text of a scalar node; ok is false if the node is not scalar or has no text.
func (p *itemParser) text(key string, n *yaml.Node) (text string, ok bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || strings.TrimSpace(n.Value) == "" {
		p.fault("%s is not text", key)
		return "", false
	}
	return strings.TrimSpace(n.Value), true
}

func (p *itemParser) name(n *yaml.Node) {
	text, ok := p.text("name", n)
	switch {
	case !ok:
	case !namePattern.MatchString(text):
		p.fault("name of %d characters: expected 1 to 32 lower-case letters, digits and hyphens between them", len(text))
	default:
		p.itemName = text
	}
}

// fileContent returns the content of the file that the value names.
func (p *itemParser) fileContent(key string, n *yaml.Node) (content string, ok bool) {
	path, ok := p.text(key, n)
	if !ok {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.folder, path)
	}
	content, err := readContent(path)
	if err != nil {
		p.fault("%s: %w", key, err)
		return "", false
	}
	return content, true
}

func (p *itemParser) url(n *yaml.Node) {
	if text, ok := p.text("url", n); ok {
		p.setURL("url", text)
	}
}

func (p *itemParser) urlFile(n *yaml.Node) {
	if text, ok := p.fileContent("urlFile", n); ok {
		p.setURL("urlFile", text)
	}
}

func (p *itemParser) setURL(key, text string) {
	if p.hasURL {
		p.fault("url and urlFile are both set: give one")
		return
	}
	p.hasURL = true
	u, err := url.Parse(text)
	if err != nil || !isEndpointURL(u, "http", "https") {
		p.fault("%s: %d characters that are not the URL of the %s: expected http:// or https:// and a host", key, len(text), p.what)
		return
	}
	p.itemURL = NewSecret(text)
}

func (p *itemParser) requestsPerSecond(n *yaml.Node) float64 {
	rate, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(rate >= 0 && rate <= maxRequests) { // NaN fails both comparisons
		p.fault("requestsPerSecond: expected a number from 0, for no limit, to %d", maxRequests)
		return 0
	}
	return rate
}
