package app

import (
	"strings"
	"testing"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/config"
)

// TestTheRelayWarnsOfRiskySettingsAtStart: it warns that it has only one endpoint, and that
// its payers' spending has no cap.
func TestTheRelayWarnsOfRiskySettingsAtStart(t *testing.T) {
	t.Parallel()
	const onTrust, uncapped = "rest on a single rpc endpoint", "no spend cap is set"
	transfers := uint64(contract.DefaultSpendCapTransfersDay)
	_, vk := newForger(t)
	tests := map[string]struct {
		endpoints []string
		change    func(*config.Serve)
		said      map[string]bool
	}{
		"one endpoint, no cap":           {said: map[string]bool{onTrust: true, uncapped: true}},
		"two endpoints, the default cap": {[]string{"one", "two"}, func(c *config.Serve) { c.SpendCapTransfersDay = transfers }, map[string]bool{onTrust: false, uncapped: false}},
		"a cap by hour alone":            {change: func(c *config.Serve) { c.SpendCapHour = sol }, said: map[string]bool{onTrust: true, uncapped: false}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, fixtureOptions{vk: vk, endpoints: test.endpoints, changeConfig: test.change})
			s.waitHealthy()
			for words, want := range test.said {
				if got := strings.Contains(s.log.String(), words); got != want {
					t.Errorf("the log says %q: %v, want %v", words, got, want)
				}
			}
			message, _ := s.health().at("checks", "rpc", "message").(string)
			if got := strings.Contains(message, "rest on"); got != test.said[onTrust] {
				t.Errorf("health says of the endpoints %q; want the warning: %v", message, test.said[onTrust])
			}
		})
	}
}
