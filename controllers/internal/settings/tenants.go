package settings

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/relaypool/relaypool/controllers/internal/tenancy"
	"github.com/relaypool/relaypool/relay/commandline"
)

// AllFields is the value of --tenant-template-fields and --tenant-api-fields that withholds no
// field; None withholds all.
const AllFields = "all"

// Tenants limits what RelayPools may request. It is for a cluster in which some users may make
// RelayPools, but are not permitted to make pods or to read every Secret. The defaults are for a
// single tenant, and allow everything.
type Tenants struct {
	Images         []string `env:"RELAYPOOL_TENANT_IMAGES" placeholder:"REPOSITORY" group:"Tenants" help:"Repositories whose images RelayPools may name in spec.image: registry.example/relaypool/relay, or registry.example/relaypool/* for all below it. Several with commas between them. The image of --relay-image is always allowed. Empty for every image."`
	TemplateFields []string `default:"all" env:"RELAYPOOL_TENANT_TEMPLATE_FIELDS" placeholder:"FIELD" group:"Tenants" help:"Fields of spec.template that RelayPools may set: all, none, or several with commas between them. They are labels, annotations, serviceAccountAnnotations, resources, nodeSelector, tolerations, affinity, priorityClassName and podTemplate. Together with another flag of tenants, all does not include podTemplate, which shows a tenant every Secret that their fleet may use."`
	APIFields      []string `default:"all" env:"RELAYPOOL_TENANT_API_FIELDS" placeholder:"FIELD" group:"Tenants" help:"Fields of spec.api by which RelayPools may expose their fleets: all, none, or several of service, ingress and gateway with commas between them. Together with --tenant-images or --tenant-require-label, all means none: name the fields."`
	RequireLabel   bool     `env:"RELAYPOOL_TENANT_REQUIRE_LABEL" group:"Tenants" help:"Let a RelayPool use only those Secrets and ConfigMaps whose label relaypool.dev/usable-by has its name or any for a value, and those of --tenant-usable. Without this flag, it may use every Secret and ConfigMap of its namespace."`
	Usable         []string `env:"RELAYPOOL_TENANT_USABLE" placeholder:"NAMESPACE/NAME" group:"Tenants" help:"Secrets and ConfigMaps that every RelayPool of their namespace may use without that label. Several with commas between them. It needs --tenant-require-label."`
}

// Check returns what is wrong with the flags of tenants.
func (t Tenants) Check() (problems []error) {
	report := func(flag, format string, args ...any) {
		problems = append(problems, commandline.Problem(flag, format, args...))
	}
	for i, text := range t.Images {
		if _, err := tenancy.ParseRepository(text); err != nil {
			report(tenancy.FlagImages, "repository %d of %d: %w", i+1, len(t.Images), err)
		}
	}
	problems = append(problems, fieldProblems(tenancy.FlagTemplateFields, t.TemplateFields, tenancy.TemplateFields())...)
	problems = append(problems, fieldProblems(tenancy.FlagAPIFields, t.APIFields, tenancy.APIFields())...)
	for i, name := range t.Usable {
		namespace, object, ok := strings.Cut(name, "/")
		if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(object)) > 0 {
			report(tenancy.FlagUsable, "name %d of %d: expected NAMESPACE/NAME of a Secret or ConfigMap, such as payments/relay-credentials, received %d characters of another form", i+1, len(t.Usable), len(name))
		}
	}
	if len(t.Usable) > 0 && !t.RequireLabel {
		report(tenancy.FlagUsable, "is set, and %s is not: without that every Secret is usable", commandline.Setting("tenant-require-label"))
	}
	return problems
}

// fieldProblems returns what is wrong with a list of allowed fields. known are the fields that can
// be withheld.
func fieldProblems(flag string, fields, known []string) (problems []error) {
	for i, field := range fields {
		switch {
		case field != AllFields && field != None && !slices.Contains(known, field):
			problems = append(problems, commandline.Problem(flag, "field %d of %d: expected all, none or one of %s, received another value of %d characters", i+1, len(fields), strings.Join(known, ", "), len(field)))
		case len(fields) > 1 && (field == AllFields || field == None):
			problems = append(problems, commandline.Problem(flag, "%s is given together with other fields: give it alone, or the fields without it", field))
		}
	}
	return problems
}

// withheld returns those of the known fields that are not allowed.
func withheld(allowed, known []string) []string {
	if len(allowed) == 0 || slices.Contains(allowed, AllFields) {
		return nil
	}
	return slices.DeleteFunc(known, func(field string) bool { return slices.Contains(allowed, field) })
}

// Policy returns the policy that the flags describe. The flags must have passed Check.
func (t Tenants) Policy() tenancy.Policy {
	p := tenancy.Policy{RequireLabel: t.RequireLabel, Usable: t.Usable}
	for _, text := range t.Images {
		if repository, err := tenancy.ParseRepository(text); err == nil {
			p.Images = append(p.Images, repository)
		}
	}
	p.Withheld = withheld(t.TemplateFields, tenancy.TemplateFields())
	p.WithheldAPI = withheld(t.APIFields, tenancy.APIFields())
	tenants := len(p.Images) > 0 || p.RequireLabel
	// With tenants, all does not mean what reaches further than a fleet: a pod template can name
	// images, objects and ports of nodes, and an Ingress a Secret and host names.
	if (tenants || p.WithheldAPI != nil) && p.Withheld == nil && !slices.Contains(t.TemplateFields, tenancy.FieldPodTemplate) {
		p.Withheld = []string{tenancy.FieldPodTemplate}
	}
	if tenants && p.WithheldAPI == nil && (len(t.APIFields) == 0 || slices.Contains(t.APIFields, AllFields)) {
		p.WithheldAPI = tenancy.APIFields()
	}
	return p
}
