package arena

import (
	"slices"
	"testing"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// A rule that the local chain refuses would end a drill in its middle.
func TestFaultsAreValid(t *testing.T) {
	t.Parallel()
	for name, rules := range faultRules() {
		if err := fault.Validate(rules); err != nil || len(rules) == 0 {
			t.Errorf("fault %q: %d rules, error %v", name, len(rules), err)
		}
	}
	for _, name := range hardFaults() {
		if !slices.Contains(faultNames(), name) {
			t.Errorf("hard fault %q is no fault", name)
		}
	}
}
