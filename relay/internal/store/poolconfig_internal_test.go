package store

import "testing"

func TestConnectionsKeepFewStatements(t *testing.T) {
	t.Parallel()
	const url = "postgres://relay@127.0.0.1/relaypool"
	tests := map[string]struct {
		url                      string
		statements, descriptions int
	}{
		"without a wish in the URL":                     {url, keptStatements, keptStatements},
		"a URL that forbids them, as some proxies need": {url + "?statement_cache_capacity=0&description_cache_capacity=7", 0, 7},
		"a URL that wants more":                         {url + "?statement_cache_capacity=1000", keptStatements, keptStatements},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := poolConfig(tt.url, 0)
			if err != nil {
				t.Fatal(err)
			}
			if c := cfg.ConnConfig; c.StatementCacheCapacity != tt.statements || c.DescriptionCacheCapacity != tt.descriptions {
				t.Errorf("room for %d statements and %d descriptions, want %d and %d", c.StatementCacheCapacity, c.DescriptionCacheCapacity, tt.statements, tt.descriptions)
			}
		})
	}
}
