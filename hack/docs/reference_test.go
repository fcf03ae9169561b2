package docs

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/config/crd"
	"github.com/relaypool/relaypool/relay/contract"
)

//go:generate go test -run ^TestReferenceIsCurrent$ . -update

var update = flag.Bool("update", false, "write the generated pages of docs/reference")

func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		"docs/reference/configuration.md": configurationPage(t),
		"docs/reference/api.md":           apiPage(t),
	} {
		if *update {
			if err := os.WriteFile(filepath.Join(root, page), []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(want, read(t, page)); diff != "" {
			t.Errorf("%s is not current, run go generate ./hack/docs (-want +got):\n%s", page, diff)
		}
	}
}

const configurationIntroduction = `# Configuration

<!-- Generated from the resource's definition and the flags by go generate ./hack/docs. Do not edit. -->

On Kubernetes you set a field of ` + "`spec`" + `. Without, you set the flag of ` + "`relay serve`" + ` or the variable; the flag wins.
` + "`relay --help` and `operator --help`" + ` explain each command and flag. A program checks everything at start, lists every
problem, and ends with code 2. Secrets are read from files only.

## Fleet

In brackets: least and greatest value. References to a Secret or ConfigMap are ` + "`{name, key}`" + `. Flags take words such as
` + "`Auto`" + ` in lower case, and times as a duration such as ` + "`30s`" + `; the default of ` + "`--router-timeout`" + ` is 3s.
[Several RPC endpoints](../guides/relay.md#rpc-endpoints).

| field, flag, variable | default | meaning |
| --- | --- | --- |
`

// settingsOf maps a field of a RelayPool to the environment variables with which the operator
// passes it to the relay. Other settings exist only as a field or only as a variable.
var settingsOf = map[string][]string{
	"spec.api.clientIPHeader":                       {contract.EnvClientIPHeader},
	"spec.api.corsOrigins":                          {contract.EnvCORSOrigins},
	"spec.api.keysSecretRef":                        {contract.EnvAPIKeysFile},
	"spec.api.requestsPerMinute":                    {contract.EnvRateLimit},
	"spec.api.retentionHours":                       {contract.EnvRetention},
	"spec.api.waitSeconds":                          {contract.EnvWait},
	"spec.concurrency":                              {contract.EnvConcurrency},
	"spec.database.caFrom":                          {contract.EnvDatabaseCAFile},
	"spec.database.clientCertificateSecretRef":      {contract.EnvDatabaseClientCertFile, contract.EnvDatabaseClientKeyFile},
	"spec.database.maxConnections":                  {contract.EnvDatabaseMaxConns},
	"spec.database.urlSecretRef":                    {contract.EnvDatabaseURLFile},
	"spec.feePayers.minimumBalanceLamports":         {contract.EnvFeePayerMinBalance},
	"spec.feePayers.secretRefs":                     {contract.EnvFeePayerKeyFile},
	"spec.feePayers.signers[].name":                 {contract.EnvFeePayerSignersFile},
	"spec.feePayers.spendCaps.dayLamports":          {contract.EnvSpendCapDay},
	"spec.feePayers.spendCaps.hourLamports":         {contract.EnvSpendCapHour},
	"spec.feePayers.spendCaps.transfersDayLamports": {contract.EnvSpendCapTransfersDay},
	"spec.pool.mints[].address":                     {contract.EnvMint},
	"spec.pool.offCurveRecipients":                  {contract.EnvOffCurveRecipient},
	"spec.pool.profile.configMapRef":                {contract.EnvProfileFile},
	"spec.pool.profile.name":                        {contract.EnvProfile},
	"spec.pool.programID":                           {contract.EnvProgramID},
	"spec.pool.proofAEncoding":                      {contract.EnvProofA},
	"spec.pool.rootHistorySize":                     {contract.EnvRootHistorySize},
	"spec.pool.verifyingKeyConfigMapRef":            {contract.EnvVerifyingKey},
	"spec.solana.cluster":                           {contract.EnvGenesisHash},
	"spec.solana.endpoints[].caFrom":                {contract.EnvRPCCAFile},
	"spec.solana.endpoints[].name":                  {contract.EnvRPCEndpointsFile},
	"spec.solana.endpoints[].url":                   {contract.EnvRPCURL},
	"spec.solana.endpoints[].urlSecretRef":          {contract.EnvRPCURLFile},
	"spec.solana.lookupTable":                       {contract.EnvLookupTable},
	"spec.solana.transactionFormat":                 {contract.EnvTransactionFormat},
	"spec.solana.priorityFee.capMicroLamports":      {contract.EnvPriorityCap},
	"spec.solana.priorityFee.floorMicroLamports":    {contract.EnvPriorityFloor},
	"spec.solana.priorityFee.maxEarlyFeesLamports":  {contract.EnvMaxEarlyFees},
	"spec.solana.priorityFee.percentile":            {contract.EnvPriorityPercentile},
	"spec.swap.concurrency":                         {contract.EnvSwapConcurrency},
	"spec.swap.router.apiKeySecretRef":              {contract.EnvRouterAPIKeyFile},
	"spec.swap.router.caFrom":                       {contract.EnvRouterCAFile},
	"spec.swap.router.programID":                    {contract.EnvRouterProgram},
	"spec.swap.router.requestsPerSecond":            {contract.EnvRouterRequests},
	"spec.swap.router.timeoutMilliseconds":          {contract.EnvRouterTimeout},
	"spec.swap.router.url":                          {contract.EnvRouterURL},
	"spec.swap.router.urlSecretRef":                 {contract.EnvRouterURLFile},
	"spec.swap.fallbackRouters[].name":              {contract.EnvRouterFallbacksFile},
	"spec.swap.slippageBps":                         {contract.EnvSwapSlippage},
	"spec.template.logLevel":                        {contract.EnvLogLevel},
	"spec.viewingKeys.compliancePublicKey":          {contract.EnvCompliancePublicKey, contract.EnvCompliancePublicKeyFile},
	"spec.viewingKeys.messages":                     {contract.EnvSignInMessages, contract.EnvSignInMessagesFile},
}

func configurationPage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(configurationIntroduction)
	relay := settings(t, "relay/internal/config", "Serve")
	used := map[string]bool{}
	for _, f := range fields(t, "spec") {
		var flags []string
		for _, variable := range settingsOf[f.path] {
			if !slices.ContainsFunc(relay, func(s setting) bool { return s.variable == variable }) {
				t.Errorf("settingsOf has %s, which relay serve does not read", variable)
			}
			used[variable] = true
			flags = append(flags, flagAndVariable(variable))
		}
		names := append([]string{"`" + strings.TrimPrefix(f.path, "spec.") + "`"}, flags...)
		fmt.Fprintf(&b, "|%s|%s|%s|\n", strings.Join(names, "<br>"), f.fallback, f.meaning)
	}
	for field := range settingsOf {
		if !slices.ContainsFunc(fields(t, "spec"), func(f resourceField) bool { return f.path == field }) {
			t.Errorf("settingsOf has %s, which is not a field of a RelayPool", field)
		}
	}
	b.WriteString("\n## Relay alone\n\nNo field sets these.\n\n")
	writeSettings(&b, slices.DeleteFunc(relay, func(s setting) bool { return used[s.variable] }))
	b.WriteString("\n## Operator\n\nFlags of `operator run`; its `--help` says what they mean. In the chart: [values](../../charts/relaypool/README.md).\n\n| flag, variable | default |\n| --- | --- |\n")
	for _, s := range settings(t, "controllers/internal/settings", "Run") {
		fmt.Fprintf(&b, "|%s|%s|\n", flagAndVariable(s.variable), asCode(s.fallback))
	}
	return b.String()
}

func writeSettings(b *strings.Builder, list []setting) {
	b.WriteString("| flag, variable | default | meaning |\n| --- | --- | --- |\n")
	for _, s := range list {
		meaning := s.meaning
		if first, _, more := strings.Cut(meaning, ". "); more && first != "Required" {
			meaning = first + "."
		}
		fmt.Fprintf(b, "|%s|%s|%s|\n", flagAndVariable(s.variable), asCode(s.fallback), meaning)
	}
}

// asCode returns a value in the form of code, or "" for none.
func asCode(value string) string {
	if value == "" {
		return ""
	}
	return "`" + value + "`"
}

func flagAndVariable(variable string) string {
	name := strings.ToLower(strings.TrimPrefix(variable, contract.VariablePrefix))
	return "`--" + strings.ReplaceAll(name, "_", "-") + "`<br>`" + variable + "`"
}

// setting is a flag of a program, as declared in the program's struct.
type setting struct{ variable, fallback, meaning string }

// settings reads the flags from the tags of a command's struct, and of the structs of the same
// package that it embeds.
func settings(t *testing.T, folder, command string) []setting {
	t.Helper()
	structs := map[string]*ast.StructType{}
	paths, err := fs.Glob(os.DirFS(root), path.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range paths {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, read(t, file), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					structs[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	var out []setting
	var add func(name string)
	add = func(name string) {
		for _, f := range structs[name].Fields.List {
			if f.Tag == nil {
				continue
			}
			tag, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			tags := reflect.StructTag(tag)
			if embedded, ok := f.Type.(*ast.Ident); ok && structs[embedded.Name] != nil && tags.Get("env") == "" {
				add(embedded.Name)
				continue
			}
			if variable := tags.Get("env"); variable != "" {
				out = append(out, setting{variable, tags.Get("default"), tags.Get("help")})
			}
		}
	}
	if structs[command] == nil {
		t.Fatalf("%s has no struct %s: nothing would be documented", folder, command)
	}
	add(command)
	return out
}

// resourceField is one value of a RelayPool that a user sets or reads.
type resourceField struct{ path, fallback, meaning string }

// fields returns the fields of a RelayPool below a path, in the order of their names.
func fields(t *testing.T, below string) []resourceField {
	t.Helper()
	var out []resourceField
	var walk func(path string, p apiextensionsv1.JSONSchemaProps, required bool)
	walk = func(path string, p apiextensionsv1.JSONSchemaProps, required bool) {
		if p.Items != nil && hasListedFields(path, *p.Items.Schema) {
			path, p = path+"[]", *p.Items.Schema
		}
		if path == below || hasListedFields(path, p) {
			for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
				walk(path+"."+name, p.Properties[name], slices.Contains(p.Required, name))
			}
			return
		}
		meaning, fallback := describe(p.Description)
		switch {
		case p.Default != nil:
			fallback = "`" + strings.Trim(string(p.Default.Raw), `"`) + "`"
		case required && below == "spec":
			fallback = "required"
		}
		if p.Minimum != nil && p.Maximum != nil {
			fallback = strings.TrimSpace(fmt.Sprintf("%s (%.0f–%.0f)", fallback, *p.Minimum, *p.Maximum))
		}
		out = append(out, resourceField{path, fallback, meaning})
	}
	walk(below, definition(t).Properties[below], true)
	return out
}

// hasListedFields reports whether the page lists the fields of a type. A reference to a Secret, a
// destination, a key service, and a type of Kubernetes are each listed as one value.
func hasListedFields(path string, p apiextensionsv1.JSONSchemaProps) bool {
	names := slices.Sorted(maps.Keys(p.Properties))
	return len(names) > 0 && !slices.Equal(names, []string{"key", "name"}) && !slices.Equal(names, []string{"name"}) && !slices.Contains(names, "cidr") &&
		!strings.HasPrefix(path, "spec.template.") && !strings.HasPrefix(path, "spec.feePayers.signers[].") && !strings.HasSuffix(path, "From") && path != "status.conditions"
}

var (
	sentences = regexp.MustCompile(` ?(Default|Example): `)
	subject   = regexp.MustCompile(`^\w+ (?:is|are) `)
)

// describe splits a description into the meaning and the default, and drops the example.
func describe(description string) (meaning, fallback string) {
	text := strings.Join(strings.Fields(description), " ")
	meaning = text
	if at := sentences.FindStringIndex(text); at != nil {
		meaning = text[:at[0]]
	}
	if _, rest, found := strings.Cut(text, "Default: "); found {
		rest, _, _ = strings.Cut(rest, " Example: ")
		fallback, _, _ = strings.Cut(strings.TrimSuffix(rest, "."), ". ")
		fallback, _, _ = strings.Cut(fallback, "; ")
	}
	meaning = subject.ReplaceAllString(meaning, "")
	if meaning != "" {
		meaning = strings.ToUpper(meaning[:1]) + meaning[1:]
	}
	return strings.ReplaceAll(meaning, "|", `\|`), strings.ReplaceAll(fallback, "|", `\|`)
}

func definition(t *testing.T) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var resource apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.RelayPool(), &resource); err != nil {
		t.Fatal(err)
	}
	return *resource.Spec.Versions[0].Schema.OpenAPIV3Schema
}

const apiIntroduction = `# The RelayPool resource

<!-- Generated from config/crd by go generate ./hack/docs. Do not edit. -->

` + "`relaypool.dev/v1alpha1`, short name `rp`. The fields of `spec` are in [configuration.md](configuration.md)" + `, the
conditions in [conditions.md](conditions.md). ` + "`kubectl explain relaypool.spec --recursive`" + ` has every type,
[config/samples](../../config/samples) RelayPools to start from. The API server refuses what breaks a rule, and says
which; ` + "`operator plan -f FILE`" + ` does the same without a cluster.

## Status

Figures change faster than they are written here: metrics have them live.

| field | meaning |
| --- | --- |
`

func apiPage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(apiIntroduction)
	for _, f := range fields(t, "status") {
		fmt.Fprintf(&b, "|`%s`|%s|\n", strings.TrimPrefix(f.path, "status."), f.meaning)
	}
	return b.String()
}
