package schema

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kubernetesTypes are the types of Kubernetes that annotations may name.
func kubernetesTypes() map[string]reflect.Type {
	return map[string]reflect.Type{
		"corev1.LocalObjectReference":          reflect.TypeFor[corev1.LocalObjectReference](),
		"corev1.ResourceRequirements":          reflect.TypeFor[corev1.ResourceRequirements](),
		"corev1.Toleration":                    reflect.TypeFor[corev1.Toleration](),
		"corev1.Affinity":                      reflect.TypeFor[corev1.Affinity](),
		"corev1.TopologySpreadConstraint":      reflect.TypeFor[corev1.TopologySpreadConstraint](),
		"networkingv1.NetworkPolicyEgressRule": reflect.TypeFor[networkingv1.NetworkPolicyEgressRule](),
		"monitoring.TLSConfig":                 reflect.TypeFor[tlsConfig](),
		"monitoring.SafeAuthorization":         reflect.TypeFor[safeAuthorization](),
	}
}

// tlsConfig is what a ServiceMonitor's endpoint may say about TLS, as far as it
// concerns the operator; the Prometheus operator's own module is not worth it.
type tlsConfig struct {
	CA                 *authority `json:"ca,omitempty"`
	ServerName         string     `json:"serverName,omitempty"`
	InsecureSkipVerify bool       `json:"insecureSkipVerify,omitempty"`
}

// safeAuthorization is how a Prometheus that reads no files for a ServiceMonitor says
// who it is.
type safeAuthorization struct {
	Type        string                    `json:"type,omitempty"`
	Credentials *corev1.SecretKeySelector `json:"credentials,omitempty"`
}

type authority struct {
	Secret    *corev1.SecretKeySelector    `json:"secret,omitempty"`
	ConfigMap *corev1.ConfigMapKeySelector `json:"configMap,omitempty"`
}

// documented are the API's types, which carry their fields' descriptions.
type documented interface{ SwaggerDoc() map[string]string }

func (w *writer) kubernetes(name string) (object, error) {
	t, ok := kubernetesTypes()[name]
	if !ok {
		return nil, fmt.Errorf("+type %s: expected a type of JSON, a list or map of one, labels, relaypools, or a type of Kubernetes that schema/kubernetes.go names", name)
	}
	return w.reflected(t), nil
}

// reflected is the schema of a Go type by its JSON; structs become definitions.
func (w *writer) reflected(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return object{"type": []string{"string", "number"}}
	case reflect.TypeFor[intstr.IntOrString]():
		return object{"type": []string{"string", "integer"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.reflected(t.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": w.reflected(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": w.reflected(t.Elem())}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Struct:
		return w.structure(t)
	default:
		return object{"type": "string"}
	}
}

func (w *writer) structure(t reflect.Type) object {
	reference := object{"$ref": "#/definitions/" + t.Name()}
	if _, done := w.definitions[t.Name()]; done {
		return reference
	}
	w.definitions[t.Name()] = object{} // a type that holds itself ends here
	properties := object{}
	var required []string
	w.fields(t, properties, &required)
	s := object{"type": "object", "additionalProperties": false, "properties": properties}
	if required != nil {
		s["required"] = required
	}
	w.definitions[t.Name()] = s
	return reference
}

func (w *writer) fields(t reflect.Type, properties object, required *[]string) {
	docs := map[string]string{}
	if d, ok := reflect.New(t).Interface().(documented); ok {
		docs = d.SwaggerDoc()
	}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			w.fields(field.Type, properties, required)
			continue
		}
		s := w.reflected(field.Type)
		if _, reference := s["$ref"]; reference {
			s = object{"allOf": []any{s}}
		}
		if doc := sentence(docs[name]); doc != "" {
			s["description"] = doc
		}
		properties[name] = s
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			*required = append(*required, name)
		}
	}
}

// sentence is the first sentence of a description, which says what a thing is.
func sentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for i := 0; i+2 < len(text); i++ {
		// What is not followed by a capital is an e.g. or an i.e.
		if text[i] == '.' && text[i+1] == ' ' && unicode.IsUpper(rune(text[i+2])) {
			return text[:i+1]
		}
	}
	return text
}
