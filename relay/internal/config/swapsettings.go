package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/commandline"
)

const (
	// maxSlippage is 100 percent, in hundredths of a percent. minSlippage is not 0, because
	// prices move with every block: without slippage, hardly any execution would succeed.
	minSlippage, maxSlippage = 1, 10_000
	// maxRouterTimeout leaves time for another quote: a swap times out about 40 seconds after
	// its first leg.
	minRouterTimeout, maxRouterTimeout = 100 * time.Millisecond, 30 * time.Second
	// maxKey is longer than any provider's API key.
	maxKey = 4096
)

// Router has the settings of the swap routers.
type Router struct {
	// URL is a Secret, because some providers put the API key into its path.
	URL               Secret        `env:"RELAYPOOL_ROUTER_URL" placeholder:"URL" group:"Swaps" help:"Swap router, Jupiter's swap API, when its URL holds no credentials: such as https://api.jup.ag/swap/v2. A path that ends with /v2 means v2 of the API (one call for a swap), any other v1 (two). No proxy is used. Empty, here and in a file, disables swaps: POST /transact_swap then answers 501, and open swaps are refunded after their timeout."`
	URLFile           string        `env:"RELAYPOOL_ROUTER_URL_FILE" placeholder:"FILE" group:"Swaps" help:"File of the router's URL, when that holds credentials."`
	APIKeyFile        string        `env:"RELAYPOOL_ROUTER_API_KEY_FILE" placeholder:"FILE" group:"Swaps" help:"File of the router's API key, sent as the header x-api-key. Empty for none."`
	CAFile            string        `env:"RELAYPOOL_ROUTER_CA_FILE" placeholder:"FILE" group:"Swaps" help:"PEM file of the only certificate authorities that the router's certificate may come from. Read again when it changes. Empty for the system's."`
	FallbacksFile     string        `env:"RELAYPOOL_ROUTER_FALLBACKS_FILE" placeholder:"FILE" group:"Swaps" help:"YAML or JSON file of up to 4 fallback routers, of the same API and program, in the order in which they are asked when those before give no route that can be executed: a list, each with name, url or urlFile, and optionally apiKeyFile, caFile and requestsPerSecond (0 for no limit). Empty for none."`
	Program           string        `default:"JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4" env:"RELAYPOOL_ROUTER_PROGRAM" placeholder:"BASE58" group:"Swaps" help:"Address of the router's program, the only one whose instructions are executed."`
	Timeout           time.Duration `default:"3s" env:"RELAYPOOL_ROUTER_TIMEOUT" placeholder:"DURATION" group:"Swaps" help:"Longest time for one answer of a router, 100ms to 30s. Several routers share 12s for a quote."`
	RequestsPerSecond int           `default:"0" env:"RELAYPOOL_ROUTER_REQUESTS_PER_SECOND" placeholder:"NUMBER" group:"Swaps" help:"Most requests a second to the router, of all processes on the database together; 0 for no limit. Set it to the limit of the API key's plan: a swap needs one request (with v1 two), and one more for each new quote."`
}

// Swaps has the checked settings of swaps, with the content of their files.
type Swaps struct {
	// Routers are the routers in the order in which the relay asks them. The first is
	// PreferredRouter.
	Routers []SwapRouter
	// Program is the only program whose instructions the relay executes.
	Program solana.PublicKey
}

// swaps returns the settings of swaps, or nil when swaps are off. With swaps off, it only
// checks that there is neither an API key nor a fallback router. Either would be a sign that
// swaps should be on.
func (s Serve) swaps() (*Swaps, []error) {
	var problems []error
	addProblem := func(flag, format string, args ...any) {
		problems = append(problems, commandline.Problem(flag, format, args...))
	}
	r := s.Router
	switch {
	case r.URL.Reveal() == "" && r.URLFile == "":
		const needsRouter = "is set, but no router is: give its URL with %s or %s"
		if r.APIKeyFile != "" {
			addProblem("router-api-key-file", needsRouter, commandline.Setting("router-url"), commandline.Setting("router-url-file"))
		}
		if r.CAFile != "" {
			addProblem("router-ca-file", needsRouter, commandline.Setting("router-url"), commandline.Setting("router-url-file"))
		}
		if r.FallbacksFile != "" {
			addProblem("router-fallbacks-file", needsRouter, commandline.Setting("router-url"), commandline.Setting("router-url-file"))
		}
		return nil, problems
	case r.URL.Reveal() != "" && r.URLFile != "":
		addProblem("router-url", "is set, and so is %s: give one", commandline.Setting("router-url-file"))
		return nil, problems
	}
	swaps, err := new(Swaps), error(nil)
	preferred := SwapRouter{Name: PreferredRouter, CAFile: r.CAFile, RequestsPerSecond: r.RequestsPerSecond}
	if preferred.URL, err = r.loadURL(); err != nil {
		problems = append(problems, err)
	}
	if err := checkCAFile("router-ca-file", r.CAFile, preferred.URL); err != nil {
		problems = append(problems, err)
	}
	if preferred.APIKey, err = r.loadKey(); err != nil {
		problems = append(problems, err)
	}
	fallbacks, found := r.loadFallbacks()
	problems = append(problems, found...)
	swaps.Routers = append([]SwapRouter{preferred}, fallbacks...)
	if swaps.Program, err = solana.PublicKeyFromBase58(r.Program); err != nil {
		addProblem("router-program", "expected 32 bytes in base58, received %d characters that are not", len(r.Program))
	}
	if r.Timeout < minRouterTimeout || r.Timeout > maxRouterTimeout {
		addProblem("router-timeout", "expected %s to %s, received %s", minRouterTimeout, maxRouterTimeout, r.Timeout)
	}
	if r.RequestsPerSecond < 0 || r.RequestsPerSecond > maxRequests {
		addProblem("router-requests-per-second", "expected 0, for no limit, to %d, received %d", maxRequests, r.RequestsPerSecond)
	}
	if s.SwapSlippageBps < minSlippage || s.SwapSlippageBps > maxSlippage {
		addProblem("swap-slippage-bps", "expected %d to %d hundredths of a percent, received %d", minSlippage, maxSlippage, s.SwapSlippageBps)
	}
	if s.SwapConcurrency < 1 || s.SwapConcurrency > maxConcurrency {
		addProblem("swap-concurrency", "expected 1 to %d, received %d", maxConcurrency, s.SwapConcurrency)
	}
	return swaps, problems
}

func (r Router) loadURL() (Secret, error) {
	flag, text := "router-url", r.URL.Reveal()
	if text == "" {
		flag = "router-url-file"
		content, err := readFile(flag, r.URLFile, "write the router's URL to a file of mode 0600 and name it")
		if err != nil {
			return Secret{}, err
		}
		text = string(content)
	}
	u, err := url.Parse(text)
	if err != nil || !isEndpointURL(u, "http", "https") {
		return Secret{}, commandline.Problem(flag, "%d characters that are not the URL of a router: expected http:// or https:// and a host", len(text))
	}
	if flag == "router-url" && (u.User != nil || u.RawQuery != "") {
		return Secret{}, commandline.Problem(flag, "the URL holds a user or a query, which may contain credentials: write it to a file of mode 0600 and name that with %s", commandline.Setting("router-url-file"))
	}
	return NewSecret(text), nil
}

func (r Router) loadKey() (Secret, error) {
	const flag = "router-api-key-file"
	if r.APIKeyFile == "" {
		return Secret{}, nil
	}
	content, err := readFile(flag, r.APIKeyFile, "write the router's API key to a file of mode 0600 and name it")
	if err != nil {
		return Secret{}, err
	}
	key, err := apiKey(string(content))
	if err != nil {
		return Secret{}, commandline.Problem(flag, "%w", err)
	}
	return key, nil
}

// apiKey checks the content of a file that holds a router's API key.
func apiKey(content string) (Secret, error) {
	if content == "" || len(content) > maxKey || strings.ContainsFunc(content, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return Secret{}, fmt.Errorf("its content of %d bytes is not an API key: expected one line of up to %d printable ASCII characters without spaces", len(content), maxKey)
	}
	return NewSecret(content), nil
}
