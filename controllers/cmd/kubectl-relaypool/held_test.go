package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

func bindViewer(s *stand, user string) {
	s.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "viewer"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.Group}, Resources: []string{"relaypools"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}},
	}}
	noError(s.t, s.client.Create(s.t.Context(), role))
	noError(s.t, s.client.Create(s.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "viewer"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}))
}

func TestHeldListsReasons(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.relayPool(nil)
	if code, _, stderr := s.command("", "held", "demo"); code != 1 || !strings.Contains(stderr, "no pod is ready") {
		t.Errorf("without a pod: exit code %d and %q, want 1 and that no pod is ready", code, stderr)
	}
	s.pod("demo-a", true)
	s.pod("demo-b", true)
	s.pages["demo-b /backlog"] = backlogPage // and demo-a does not answer
	s.golden("held", s.succeed("held", "demo"))
	s.pages["demo-a /backlog"] = `{"due_count":0,"held":{"chain_expiry":0}}`
	if out := s.succeed("held", "demo"); out != "no submissions are held\n" {
		t.Errorf("received %q, want that none are held", out)
	}
}

// A network policy keeps the API server from all pods, so one is enough to know.
func TestOnlyOneSilentPodIsAsked(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.relayPool(nil)
	for _, pod := range []string{"demo-a", "demo-b"} {
		s.pod(pod, true)
		s.pages[pod+" /backlog"], s.pages[pod+" /health"] = hang, hang
	}
	code, _, stderr := s.command("", "held", "demo")
	if code != 1 || !strings.Contains(stderr, "ask pod demo-a for /backlog: no answer") || !strings.Contains(stderr, "spec.networkPolicy") {
		t.Errorf("exit code %d and %q, want 1 and that a policy may be the cause", code, stderr)
	}
	code, _, stderr = s.command("", "support-bundle", "demo", "-f", filepath.Join(t.TempDir(), "out.tar.gz"))
	if code != 0 || strings.Count(stderr, "spec.networkPolicy") != 1 {
		t.Errorf("exit code %d and %q, want 0 and that one pod was asked", code, stderr)
	}
}

// Reasons are constants of the relay's internal packages, whose names begin with Hold, or with
// Reason in the package of swaps.
func TestEveryReasonHasAdvice(t *testing.T) {
	t.Parallel()
	const root = "../../../"
	found := map[string]bool{}
	for folder, prefix := range map[string]string{"txmgr": "Hold", "submission": "Hold", "swap": "Reason"} {
		files, err := filepath.Glob(root + "relay/internal/" + folder + "/*.go")
		noError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, reason := range constants(t, file, prefix) {
				found[reason] = true
				if adviceFor(reason) == unknownReason {
					t.Errorf("there is no advice for %s, a constant in %s", reason, file)
				}
			}
		}
	}
	runbook, err := os.ReadFile(root + "docs/reference/alerts/RelaypoolSubmissionsHeld.md")
	noError(t, err)
	for _, m := range regexp.MustCompile("`([a-z]+(?:_[a-z]+)*)`:\\s").FindAllStringSubmatch(string(runbook), -1) {
		found[m[1]] = true
		if adviceFor(m[1]) == unknownReason {
			t.Errorf("there is no advice for %s, which the runbook explains", m[1])
		}
	}
	for reason := range advice {
		if !found[reason] {
			t.Errorf("there is advice for %s, which is neither a constant nor in the runbook", reason)
		}
	}
}

// constants returns the texts of a file's string constants whose names begin with prefix.
func constants(t *testing.T, file, prefix string) (texts []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	noError(t, err)
	for _, declaration := range parsed.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			for i, name := range value.Names {
				if literal, ok := valueAt(value.Values, i).(*ast.BasicLit); ok && strings.HasPrefix(name.Name, prefix) && literal.Kind == token.STRING {
					text, err := strconv.Unquote(literal.Value)
					noError(t, err)
					texts = append(texts, text)
				}
			}
		}
	}
	return texts
}

func valueAt(values []ast.Expr, i int) ast.Expr {
	if i < len(values) {
		return values[i]
	}
	return nil
}
