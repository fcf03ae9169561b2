package app

import (
	"strings"
	"testing"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/config"
)

// A relay warns if it has only one endpoint, and if its payers' spending has no cap.
func TestTheRelayWarnsOfRiskySettingsAtStart(t *testing.T) {
	t.Parallel()
	const singleEndpoint, uncapped = "rest on a single rpc endpoint", "all spend caps are disabled"
	transfers := uint64(contract.DefaultSpendCapTransfersDay)
	_, vk := newForger(t)
	tests := map[string]struct {
		endpoints []string
		change    func(*config.Serve)
		logged    map[string]bool
	}{
		"one endpoint, no cap":           {logged: map[string]bool{singleEndpoint: true, uncapped: true}},
		"two endpoints, the default cap": {[]string{"one", "two"}, func(c *config.Serve) { c.SpendCapTransfersDay = transfers }, map[string]bool{singleEndpoint: false, uncapped: false}},
		"only a cap by hour":             {change: func(c *config.Serve) { c.SpendCapHour = sol }, logged: map[string]bool{singleEndpoint: true, uncapped: false}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, fixtureOptions{vk: vk, endpoints: test.endpoints, changeConfig: test.change})
			s.waitHealthy()
			for words, want := range test.logged {
				if got := strings.Contains(s.log.String(), words); got != want {
					t.Errorf("log contains %q: %v, want %v", words, got, want)
				}
			}
			message, _ := s.health().at("checks", "rpc", "message").(string)
			if got := strings.Contains(message, "rest on"); got != test.logged[singleEndpoint] {
				t.Errorf("health reports %q on the endpoints, want the warning: %v", message, test.logged[singleEndpoint])
			}
		})
	}
}
