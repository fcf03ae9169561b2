package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/config"
)

// plainEndpoint is an endpoint with its URLs as plain text.
type plainEndpoint struct {
	Name, URL, WebSocketURL string
	Roles                   []string
	RequestsPerSecond       float64
}

func loadList(path string) ([]plainEndpoint, commandline.Problems) {
	endpoints, problems := config.RPC{EndpointsFile: path}.Load()
	var out []plainEndpoint
	for _, e := range endpoints {
		out = append(out, plainEndpoint{e.Name, e.URL.Reveal(), e.WebSocketURL.Reveal(), e.Roles, e.RequestsPerSecond})
	}
	return out, problems
}

func TestEndpointsAreReadFromAList(t *testing.T) {
	t.Parallel()
	all := []string{"read", "submit", "archive"}
	secret := file(t, "https://rpc.example/?api-key="+canary+"\n")
	tests := map[string]struct {
		content string
		want    []plainEndpoint
	}{
		"a name and a URL are enough": {
			"- name: one\n  url: http://127.0.0.1:8899\n",
			[]plainEndpoint{{"one", "http://127.0.0.1:8899", "", all, 0}},
		},
		"everything can be set": {
			"- {name: fast, url: 'https://u:" + canary + "@a.example/', websocketURL: 'wss://a.example/" + canary + "', roles: [submit], requestsPerSecond: 12.5}\n" +
				"- {name: old-2, urlFile: " + secret + ", websocketURL: none, roles: [archive, read]}\n",
			[]plainEndpoint{
				{"fast", "https://u:" + canary + "@a.example/", "wss://a.example/" + canary, []string{"submit"}, 12.5},
				{"old-2", "https://rpc.example/?api-key=" + canary, "none", []string{"archive", "read"}, 0},
			},
		},
		"JSON with tabs is read": {
			"[\n\t{\"name\": \"one\", \"url\": \"http://h\", \"requestsPerSecond\": 5},\n\t{\"name\": \"two\", \"url\": \"http:\\/\\/i\"}\n]",
			[]plainEndpoint{{"one", "http://h", "", all, 5}, {"two", "http://i", "", all, 0}},
		},
		"a name of digits is valid": {
			"- name: 1\n  url: http://h\n",
			[]plainEndpoint{{"1", "http://h", "", all, 0}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problems := loadList(file(t, tc.content))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRelativeURLFileIsInTheFolderOfTheList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"url": "http://h/" + canary, "list.yaml": "- {name: one, urlFile: url}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, problems := loadList(filepath.Join(dir, "list.yaml"))
	if len(problems) > 0 || got[0].URL != "http://h/"+canary {
		t.Errorf("endpoints %v, problems %v; want the URL in the file", got, problems)
	}
}

// Every value and every unknown key contains the canary.
func TestProblemsOfEndpointListAreListedWithoutValues(t *testing.T) {
	t.Parallel()
	const good = "- {name: good, url: 'http://h/" + canary + "'}\n"
	many := func() string {
		var b strings.Builder
		for i := range 17 {
			fmt.Fprintf(&b, "- {name: n%d, url: 'http://h/%s'}\n", i, canary)
		}
		return b.String()
	}()
	const account = "4ACfpUFoaSD9bfPdeu6DBt89gB6ENTeHBXCAi87NhDEE"
	const tip = "{accounts: [" + account + "], minLamports: 1, maxLamports: 2}"
	lane := func(tip string) string {
		return "- {name: lane, url: 'http://" + canary + "', roles: [submit], tip: " + tip + "}\n"
	}
	tests := map[string]struct {
		content string
		want    []string // a part of each problem
	}{
		"an empty file":                   {"\n", []string{"is empty"}},
		"plain text":                      {canary, []string{"holds no list"}},
		"neither YAML nor JSON":           {"- {" + canary, []string{"neither YAML nor JSON"}},
		"a mapping":                       {"endpoints:\n- " + canary, []string{"holds no list"}},
		"no endpoint":                     {"[]", []string{"lists 0 endpoints: expected 1 to 16"}},
		"too many endpoints":              {many, []string{"lists 17 endpoints"}},
		"two documents":                   {good + "---\n" + canary, []string{"more than one document"}},
		"an item that is a URL":           {"- https://" + canary, []string{"endpoint 1 of 1: expected keys and values"}},
		"an unknown key":                  {good + "- {name: b, url: 'http://h', " + canary + ": 1}", []string{"endpoint 2 of 2: a key of 12 characters is not known: expected name, url, urlFile"}},
		"a key in another case":           {"- {name: b, URL: 'http://" + canary + "'}", []string{"a key of 3 characters is not known", "url is missing"}},
		"a key twice":                     {"- {name: b, name: c, url: 'http://" + canary + "'}", []string{"name is there twice"}},
		"no name and no URL":              {"- roles: [read]\n" + good, []string{"endpoint 1 of 2: name is missing", "endpoint 1 of 2: url is missing"}},
		"a name that is a URL":            {"- {name: 'https://" + canary + "', url: 'http://h'}", []string{"name of 20 characters: expected 1 to 32 lower-case letters"}},
		"an empty name":                   {"- {name: , url: 'http://" + canary + "'}", []string{"name is not text"}},
		"a name that is a list":           {"- {name: [" + canary + "], url: 'http://h'}", []string{"name is not text"}},
		"an alias for a name":             {"- {name: &a b, url: 'http://h'}\n- {name: *a, url: 'http://" + canary + "'}", []string{"endpoint 2 of 2: name is not text"}},
		"two endpoints of one name":       {good + good, []string{"endpoint 2 of 2: name is that of endpoint 1 too"}},
		"a URL of another kind":           {"- {name: b, url: 'ws://" + canary + "'}", []string{"not the URL of the endpoint: expected http:// or https://"}},
		"a URL and its file":              {"- {name: b, url: 'http://" + canary + "', urlFile: " + file(t, "http://"+canary) + "}", []string{"url and urlFile are both set"}},
		"a file that is not there":        {"- {name: b, urlFile: /" + canary + "}", []string{"urlFile: cannot be read: no such file or directory"}},
		"a file of another kind":          {"- {name: b, urlFile: " + file(t, canary) + "}", []string{"urlFile: 12 characters that are not the URL"}},
		"a WebSocket URL of another kind": {"- {name: b, url: 'http://h', websocketURL: 'http://" + canary + "'}", []string{"websocketURL: 19 characters that are not a WebSocket URL: expected ws:// or wss:// and a host, or none"}},
		"an unknown role":                 {"- {name: b, url: 'http://h', roles: [read, " + canary + ", submit]}", []string{"role 2 of 3 has 12 characters: expected read, submit or archive"}},
		"a role twice":                    {"- {name: b, url: 'http://h', roles: [read, read, submit]}", []string{"role read is there twice"}},
		"roles that are not a list":       {"- {name: b, url: 'http://h', roles: " + canary + "}", []string{"roles is not a list"}},
		"no roles in the list":            {"- {name: b, url: 'http://h', roles: []}", []string{"roles is not a list"}},
		"a rate that is not a number":     {"- {name: b, url: 'http://h', requestsPerSecond: " + canary + "}", []string{"requestsPerSecond: expected a number from 0"}},
		"a negative rate":                 {"- {name: b, url: 'http://h', requestsPerSecond: -1}", []string{"requestsPerSecond: expected a number from 0"}},
		"a rate that is NaN":              {"- {name: b, url: 'http://h', requestsPerSecond: NaN}", []string{"requestsPerSecond: expected a number from 0"}},
		"no endpoint that submits":        {"- {name: b, url: 'http://" + canary + "', roles: [read, archive]}", []string{"no endpoint has the role submit"}},
		"no endpoint that reads":          {"- {name: b, url: 'http://" + canary + "', roles: [submit, archive]}", []string{"no endpoint has the role read"}},
		"a tip and other roles":           {good + "- {name: b, url: 'http://h', tip: " + tip + "}", []string{"endpoint 2 of 2: it has a tip, so it is sent transactions and asked nothing: set roles to [submit]"}},
		"a lane called rpc":               {good + strings.Replace(lane(tip), "name: lane", "name: rpc", 1), []string{"name is rpc, which stands for transactions without a tip"}},
		"only lanes submit":               {"- {name: b, url: 'http://h', roles: [read]}\n" + lane(tip), []string{"no endpoint has the role submit: give it to at least one without a tip"}},
		"a tip that is a number":          {good + lane(canary), []string{"tip: expected accounts, minLamports, maxLamports"}},
		"an empty tip":                    {good + lane("{}"), []string{"tip: accounts is missing"}},
		"a tip without bounds":            {good + lane("{accounts: ["+account+"]}"), []string{"tip: minLamports and maxLamports are needed"}},
		"a tip whose bounds are crossed":  {good + lane("{accounts: ["+account+"], minLamports: 9, maxLamports: 8}"), []string{"tip: minLamports is above maxLamports"}},
		"a tip of a fortune":              {good + lane("{accounts: ["+account+"], minLamports: 1, maxLamports: 100000001}"), []string{"tip: maxLamports: expected 1 to 100000000 lamports", "tip: minLamports and maxLamports are needed"}},
		"a tip account of another kind":   {good + lane("{accounts: ["+account+", "+canary+"], minLamports: 1, maxLamports: 1}"), []string{"tip: account 2 of 2 has 12 characters: expected an address in base58"}},
		"a tip account twice":             {good + lane("{accounts: ["+account+", "+account+"], minLamports: 1, maxLamports: 1}"), []string{"tip: account 2 of 2 is there twice"}},
		"tip accounts that are no list":   {good + lane("{accounts: "+canary+", minLamports: 1, maxLamports: 1}"), []string{"tip: accounts is not a list", "tip: accounts is missing"}},
		"a tip with another use":          {good + lane("{accounts: ["+account+"], minLamports: 1, maxLamports: 1, use: "+canary+"}"), []string{"tip: use has 12 characters: expected always or urgent"}},
		"a tip with an unknown key":       {good + lane("{accounts: ["+account+"], minLamports: 1, maxLamports: 1, "+canary+": 1}"), []string{"tip: a key of 12 characters is not known"}},
		"faults of two endpoints are all listed": {
			"- {name: B, url: x}\n- {name: c, url: 'http://h', roles: [x], requestsPerSecond: x}",
			[]string{"1 of 2: name", "1 of 2: url", "2 of 2: role", "2 of 2: requestsPerSecond"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := loadList(file(t, tc.content))
			if len(problems) != len(tc.want) {
				t.Fatalf("want %d problems, received %v", len(tc.want), problems)
			}
			for i, want := range tc.want {
				if got := problems[i].Error(); !strings.HasPrefix(got, "--rpc-endpoints-file") || !strings.Contains(got, want) {
					t.Errorf("want …%s…, received %s", want, got)
				}
			}
			if strings.Contains(problems.Error(), canary) {
				t.Errorf("the error contains a value: %v", problems)
			}
		})
	}
}

// The list in the documentation loads.
func TestDocumentedListLoads(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/guides/relay.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "```yaml\n")
	list, _, _ = strings.Cut(list, "```")
	dir := folder(t)
	for name, content := range map[string]string{"provider-a.url": "https://rpc.provider-a.example/" + canary, "list.yaml": list} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, problems := loadList(filepath.Join(dir, "list.yaml"))
	if len(problems) > 0 || len(got) != 2 {
		t.Errorf("endpoints %v, problems %v; want two endpoints", got, problems)
	}
}
