package shieldpool_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	other    = "FoJwdEv9uCmWVnqRDq9mozUoEzuaQfdw1aysziJt6RYW"
	fieldHex = "00000000000000000000000000000000000000000000000000000000000000ff"
)

func TestOmittedKeysKeepTheBaseValues(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		yaml string
		want func(*shieldpool.Profile)
	}{
		"nothing but the base": {"base: development", func(*shieldpool.Profile) {}},
		"JSON":                 {`{"base": "development", "rootHistory": 64}`, func(p *shieldpool.Profile) { p.RootHistory = 64 }},
		"one tag":              {"base: development\ntags: {transact: 7}", func(p *shieldpool.Profile) { p.Tags.Transact = 7 }},
		"a name and a program": {"base: development\nname: mine\nprogramID: " + other, func(p *shieldpool.Profile) { p.Name, p.ProgramID = "mine", solana.MustPublicKeyFromBase58(other) }},
		"seeds that name a mint": {"base: development\nseeds: {pool: [{literal: pool}, {value: mint}]}", func(p *shieldpool.Profile) {
			p.Seeds.Pool = append(p.Seeds.Pool, shieldpool.Seed{Value: shieldpool.SeedMint})
		}},
		"a list replaces the base's": {"base: development\nmints: [{address: " + other + ", field: '" + fieldHex + "'}]", func(p *shieldpool.Profile) {
			p.Mints = []shieldpool.Mint{{Address: solana.MustPublicKeyFromBase58(other), Field: [32]byte{31: 255}}}
		}},
		"errors replace all of the base's": {"base: development\nerrors: {0x10: Ten, 17: Eleven}", func(p *shieldpool.Profile) { p.Errors = map[uint32]string{16: "Ten", 17: "Eleven"} }},
		"a class of one code": {"base: development\nclasses: [{first: 0x1001, class: spent}]", func(p *shieldpool.Profile) {
			p.Classes = []shieldpool.ClassRange{{First: 0x1001, Last: 0x1001, Class: shieldpool.ClassSpent}}
		}},
		"a fee":                   {"base: development\nfees: {base: 18446744073709551615}", func(p *shieldpool.Profile) { p.Fees.Base = 1<<64 - 1 }},
		"a message of many lines": {"base: development\nsignInMessages:\n- |-\n  one\n\n  two", func(p *shieldpool.Profile) { p.SignInMessages = []string{"one\n\ntwo"} }},
		"switches and numbers": {"base: development\nallowOffCurveRecipient: true\nrefusesV1: true\nextData: opaque\nswapTimeout: 5\nrecipientMinimum: 0", func(p *shieldpool.Profile) {
			p.AllowOffCurveRecipient, p.RefusesV1, p.ExtData, p.SwapTimeout, p.RecipientMinimum = true, true, shieldpool.ExtDataOpaque, 5, 0
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := shieldpool.Development()
			test.want(want)
			got, err := shieldpool.ParseProfile([]byte(test.yaml))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			written, err := shieldpool.MarshalProfile(got)
			if err != nil {
				t.Fatal(err)
			}
			again, err := shieldpool.ParseProfile(written)
			if err != nil {
				t.Fatalf("%v\n%s", err, written)
			}
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("the written profile reads back different (-want +got)\n%s", diff)
			}
		})
	}
}

const canary = "c4n4ryc4n4ry"

func TestProblemsNameTheKeyAndNoValue(t *testing.T) {
	t.Parallel()
	base := "base: development\n"
	tests := map[string]struct {
		yaml string
		want []string
	}{
		"no YAML":                          {"\tx: [" + canary, []string{"profile: expected YAML with the keys of a profile, received 17 bytes"}},
		"nothing":                          {"", []string{"received 0 bytes"}},
		"two documents":                    {base + "---\nname: x", []string{"expected one YAML document"}},
		"a list":                           {"- " + canary, []string{"profile (line 1): expected keys and values, base first, received a list of 1"}},
		"no base":                          {"name: x", []string{"base: is missing: expected shield-pool-v1 or development"}},
		"an unknown base":                  {"base: " + canary, []string{"base (line 1): expected shield-pool-v1 or development, received 12 characters"}},
		"an unknown key":                   {base + canary + ": 1", []string{"profile (line 2): a key of 12 characters is not known: expected one of accounts, allowOffCurveRecipient"}},
		"an unknown key below":             {base + "tags: {" + canary + ": 1}", []string{"tags (line 2): a key of 12 characters is not known: expected one of closeSwapState"}},
		"a key twice":                      {base + "name: a\nname: b", []string{"name (line 3): the key is repeated"}},
		"an invalid program":               {base + "programID: " + canary, []string{"programID (line 2): expected an address, 32 bytes in base58, received 12 characters"}},
		"a tag out of range":               {base + "tags: {transact: 256}", []string{"tags.transact (line 2): expected a whole number from 0 to 255, received 256"}},
		"a tag that is no number":          {base + "tags: {transact: " + canary + "}", []string{"tags.transact (line 2): expected a whole number from 0 to 255, received 12 characters"}},
		"the same tag twice":               {base + "tags: {transact: 1}", []string{"tags.transactSwap: expected a tag of its own, received 1, which is the tag of transact"}},
		"tags that are no mapping":         {base + "tags: " + canary, []string{"tags (line 2): expected keys and values (closeSwapState, executeSwap", "received 12 characters"}},
		"a root history that is too short": {base + "rootHistory: 1", []string{"rootHistory (line 2): expected a whole number from 2 to 300000, received 1"}},
		"a switch that is no boolean":      {base + "allowOffCurveRecipient: " + canary, []string{"allowOffCurveRecipient (line 2): expected true or false, received 12 characters"}},
		"an unknown rule":                  {base + "extData: " + canary, []string{"extData (line 2): expected one of opaque, sha256-31, received 12 characters"}},
		"an unknown role":                  {base + "accounts: {transact: [{role: " + canary + "}]}", []string{"accounts.transact[0].role (line 2): expected one of payer, pool"}},
		"an account without role":          {base + "accounts: {transact: [{writable: true}]}", []string{"accounts.transact[0] (line 2): role is missing"}},
		"an order without a tree":          {base + "accounts: {initialize: [{role: payer, signer: true}]}", []string{"accounts.initialize: expected the role merkle_tree once, received it 0 times"}},
		"a signer besides the payer":       {base + "accounts: {closeWrapped: [{role: swap_wsol_ata, signer: true}]}", []string{"accounts.closeWrapped[0]: expected only the payer as signer"}},
		"a payer that does not sign":       {base + "accounts: {closeSwapState: [{role: payer, writable: true}, {role: swap_state, writable: true}, {role: recipient, writable: true}]}", []string{"accounts.closeSwapState[0]: expected only the payer as signer"}},
		"a seed with literal and value":    {base + "seeds: {pool: [{literal: a, value: mint}]}", []string{"seeds.pool[0] (line 2): expected either literal or value, received 2 keys"}},
		"an empty seed":                    {base + "seeds: {pool: [{}]}", []string{"seeds.pool[0] (line 2): expected either literal or value, received 0 keys"}},
		"a literal too long":               {base + "seeds: {pool: [{literal: " + strings.Repeat("x", 33) + "}]}", []string{"seeds.pool[0].literal (line 2): expected a text of 1 to 32 characters, received 33 characters"}},
		"a nullifier without its seed":     {base + "seeds: {nullifier: [{literal: n}]}", []string{"seeds.nullifier: expected the value nullifier in the seeds of nullifier and swapState, and in no others"}},
		"a mint without field":             {base + "mints: [{address: " + other + "}]", []string{"mints[0] (line 2): field is missing"}},
		"a field of another size":          {base + "mints: [{address: " + other + ", field: " + canary + "}]", []string{"mints[0].field (line 2): expected 64 hexadecimal digits, received 12 characters"}},
		"a field above the order":          {base + "mints: [{address: " + other + ", field: " + strings.Repeat("f", 64) + "}]", []string{"mints[0].field: expected a field element, received a number that is not below the field's order"}},
		"a mint twice":                     {base + "mints: [{address: " + other + ", field: '" + fieldHex + "'}, {address: " + other + ", field: '" + fieldHex + "'}]", []string{"mints[1].address: expected an address of its own, received the address of mints[0]", "mints[1].field: expected a field element of its own"}},
		"no mint":                          {base + "mints: []", []string{"mints (line 2): expected a list of 1 to 16, received a list of 0"}},
		"a fee of 100 percent":             {base + "fees: {numerator: 1000}", []string{"fees: expected a numerator below the denominator, received 1000 and 1000"}},
		"an invalid code":                  {base + "errors: {" + canary + ": X}", []string{"errors (line 2): expected a code such as 0x1001 as the key, received 12 characters"}},
		"a code twice":                     {base + "errors: {0x10: X, 16: Y}", []string{"errors.0x10 (line 2): the code is repeated"}},
		"a reversed range":                 {base + "classes: [{first: 2, last: 1, class: spent}]", []string{"classes[0]: expected first to be at most last, received 0x2 and 0x1"}},
		"an unknown class":                 {base + "classes: [{first: 2, class: " + canary + "}]", []string{"classes[0].class (line 2): expected one of stale_proof, spent"}},
		"an empty message":                 {base + "signInMessages: ['']", []string{"signInMessages[0] (line 2): expected a text of 1 to 1024 characters, received nothing"}},
		"an alias":                         {base + "name: &a x\nsignInMessages: [*a]", []string{"signInMessages[0] (line 3): expected a text of 1 to 1024 characters, received an alias"}},
		"several faults":                   {base + "name: []\nswapTimeout: 0", []string{"name (line 2): expected a text", "swapTimeout (line 3): expected a whole number from 1"}},
		"too much":                         {base + "#" + strings.Repeat(" ", 1<<20), []string{"expected at most 1048576 bytes, received 1048595"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := shieldpool.ParseProfile([]byte(test.yaml))
			var problems shieldpool.ProfileProblems
			if !errors.As(err, &problems) {
				t.Fatalf("got %v, want problems", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("%v repeats the value", err)
			}
			if len(test.want) < 2 && len(problems) != 1 && name != "tags that are no mapping" && !strings.HasPrefix(name, "a role") && !strings.HasPrefix(name, "an order") && !strings.HasPrefix(name, "a class") {
				t.Errorf("got %d problems, want one: %v", len(problems), err)
			}
		})
	}
}

func TestParseMints(t *testing.T) {
	t.Parallel()
	got, err := shieldpool.ParseMints([]string{other + "=" + fieldHex})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]shieldpool.Mint{{Address: solana.MustPublicKeyFromBase58(other), Field: [32]byte{31: 255}}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for name, texts := range map[string][]string{
		"no field":         {other},
		"no address":       {"=" + fieldHex},
		"a short field":    {other + "=" + fieldHex[1:]},
		"an address twice": {other + "=" + fieldHex, other + "=" + fieldHex[:63] + "1"},
		"too large":        {other + "=" + strings.Repeat("f", 64)},
		"something else":   {canary},
	} {
		if _, err := shieldpool.ParseMints(texts); err == nil || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), other) {
			t.Errorf("%s: got %v, want an error without the received values", name, err)
		}
	}
}

func TestBuiltInProfilesAreValid(t *testing.T) {
	t.Parallel()
	for _, p := range []*shieldpool.Profile{shieldpool.ShieldPoolV1(), shieldpool.Development()} {
		content, err := shieldpool.MarshalProfile(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := shieldpool.ParseProfile(content)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Errorf("%s (-want +got)\n%s", p.Name, diff)
		}
	}
	broken := shieldpool.Development()
	broken.Mints = nil
	if _, err := shieldpool.MarshalProfile(broken); err == nil {
		t.Error("wrote a profile without mints, want an error")
	}
}

func FuzzParse(f *testing.F) {
	for _, p := range []*shieldpool.Profile{shieldpool.ShieldPoolV1(), shieldpool.Development()} {
		content, err := shieldpool.MarshalProfile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Add([]byte("base: development\ntags: {transact: 7}"))
	f.Add([]byte("base: &a development\nname: *a"))
	f.Fuzz(func(t *testing.T, content []byte) {
		p, err := shieldpool.ParseProfile(content)
		if err != nil {
			return
		}
		written, err := shieldpool.MarshalProfile(p)
		if err != nil {
			t.Fatalf("cannot write the parsed profile: %v", err)
		}
		again, err := shieldpool.ParseProfile(written)
		if err != nil {
			t.Fatalf("cannot parse the written profile: %v\n%s", err, written)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Errorf("the written profile reads back different (-want +got)\n%s", diff)
		}
	})
}
