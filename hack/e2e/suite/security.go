package suite

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/hack/e2e/report"
	"github.com/relaypool/relaypool/relay/contract"
)

// security shows that the standard under which everything runs is enforced, and
// that policies are there; whether they are enforced is the cluster's affair.
func (s *suite) security(ctx context.Context, r *report.Scenario) error {
	for _, in := range []string{OperatorNamespace, namespace} {
		err := s.Cluster.Client.Create(ctx, breaking(in, s.Images.Gate), client.DryRunAll)
		if err := denied("a pod as root in "+in, err, func(err error) bool {
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "violates PodSecurity")
		}); err != nil {
			return err
		}
	}
	r.Saw("a pod as root is refused in both namespaces")
	for in, want := range map[string]string{OperatorNamespace: "", namespace: fleetName} {
		policies := &networkingv1.NetworkPolicyList{}
		if err := s.Cluster.Client.List(ctx, policies, client.InNamespace(in)); err != nil {
			return fmt.Errorf("list network policies: %w", err)
		}
		found := false
		for i := range policies.Items {
			found = found || want == "" || policies.Items[i].Name == want
		}
		if !found {
			return fmt.Errorf("no network policy is in %s, expected that of the operator or of the fleet", in)
		}
	}
	pods, err := s.fleet.settled(ctx, "serves", anyPod)
	if err != nil {
		return err
	}
	enforced, err := s.enforces(ctx)
	if err != nil {
		return err
	}
	if err := s.keptOff(ctx, net.JoinHostPort(pods[0].Status.PodIP, strconv.Itoa(contract.OperationsPort)), enforced); err != nil {
		return err
	}
	words := "this cluster does not enforce network policies, that of a pod which admits nobody included: they are there, and were not tested"
	if enforced {
		words = "the network policy keeps strangers off the operations port, and lets in who is named"
	}
	r.Saw("%s", words)
	r.Sum("restricted in 2 namespaces; network policies enforced: %t", enforced)
	return nil
}

// breaking is a pod that the restricted standard refuses.
func breaking(in, image string) *corev1.Pod {
	root := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "breaking", Namespace: in},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "root", Image: image, SecurityContext: &corev1.SecurityContext{RunAsUser: &root},
		}}},
	}
}
