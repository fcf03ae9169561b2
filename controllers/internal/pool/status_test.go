package pool

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/refs"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

// conditionCase is one condition of one set of facts.
type conditionCase struct {
	change   func(f *Facts)
	outcome  Outcome
	want     string // status and reason
	wantText []string
	wantNot  []string // texts that the message must not have
}

const none = "none"

// These are addresses of ed25519 keys.
const (
	signerA = "9wfXhaoTA134sVJB2jJjFCia6x4YY7fmbNhh4qB9K52c"
	signerB = "uXF3LL1qVZjPtq5FfwMB8qxZg9CdzjspTkMQUbiVeKB"
)

func TestConditions(t *testing.T) {
	t.Parallel()
	deployment := apply.Ref{Kind: build.KindDeployment, Name: "demo"}
	withheld := Outcome{Applied: true, Result: apply.Result{
		Foreign: []apply.Ref{{Kind: build.KindServiceAccount, Name: "demo"}}, Withheld: []apply.Ref{deployment},
	}}
	partUnread := func(p Part) func(*Facts) { return func(f *Facts) { f.Unread[p] = errors.New("boom") } }
	badReference := func(reason string) func(*Facts) {
		return func(f *Facts) {
			f.References.Problems = []refs.Problem{{Kind: refs.Secret, Name: "postgres", Key: "url", Reason: reason, Message: "Secret postgres is not what it must be"}}
		}
	}
	chainReport := func(state poolcheck.State, reason poolcheck.Reason) func(*Facts) {
		return func(f *Facts) { f.Chain.Report = reportOf(state, reason) }
	}
	chainLost := func(f *Facts) {
		f.Chain.UnavailableSince, f.Chain.Cause = now(), "endpoint main does not answer"
	}
	gateClosed := func(f *Facts) {
		f.Pool.Status.InitialisedAt = nil
		chainReport(poolcheck.Failed, poolcheck.ReasonAccountMissing)(f)
		setFleet(f, 0, 0)
	}
	// newLeader changes the facts to a new leader's first pass on a RelayPool with a
	// status.
	newLeader := func(f *Facts) {
		f.Pool.Status = statusOf(t, f)
		f.Chain, f.ChainRead = chainwatch.Reading{}, false
	}
	olderGeneration := func(f *Facts) {
		for i := range f.Pool.Status.Conditions {
			f.Pool.Status.Conditions[i].ObservedGeneration--
		}
	}
	// generated adds a generated key without lamports.
	generated := func(backup *v1alpha1.KeyBackup, backedUp bool) func(*Facts) {
		return func(f *Facts) {
			f.Pool.Spec.FeePayers.Generate = &v1alpha1.GeneratedKeys{Count: 1, Backup: backup}
			f.Keys.Keys = []keys.Key{{Secret: keys.SecretName("demo", 0, 0), Address: signerA, State: v1alpha1.PayerActive, BackedUp: backedUp}}
			f.Chain.Payers[solana.MustPublicKeyFromBase58(signerA)] = chainwatch.Payer{At: now()}
		}
	}
	// signers adds fee payers in key services, of which the first has the minimum balance.
	signers := func(addresses ...string) func(*Facts) {
		return func(f *Facts) {
			for i, a := range addresses {
				f.Pool.Spec.FeePayers.Signers = append(f.Pool.Spec.FeePayers.Signers, v1alpha1.Signer{Name: string(rune('a' + i)), Address: a})
			}
			f.Chain.Payers[solana.MustPublicKeyFromBase58(signerA)] = chainwatch.Payer{Lamports: 50_000_000, At: now()}
			f.Chain.Payers[solana.MustPublicKeyFromBase58(signerB)] = chainwatch.Payer{Lamports: 49_999_999, At: now()}
		}
	}
	offCurve, _, err := solana.FindProgramAddress([][]byte{[]byte("vault")}, solana.SystemProgramID)
	if err != nil {
		t.Fatal(err)
	}
	onlyRetiredKey := func(f *Facts) {
		f.Pool.Spec.FeePayers = v1alpha1.FeePayers{Generate: &v1alpha1.GeneratedKeys{Count: 1}}
		f.References.Payers = nil
		f.Keys.Keys = []keys.Key{generatedKey(v1alpha1.PayerRetired)}
	}
	autoscaled := func(f *Facts) {
		f.Pool.Spec.Replicas = nil
		f.Pool.Spec.Autoscaling = &v1alpha1.Autoscaling{Provider: v1alpha1.ProviderHPA, MinReplicas: 1, MaxReplicas: 5}
		f.Autoscaler = Autoscaler{Present: true, Working: ptr.To(true)}
	}
	autoscalerFails := func(message string) func(*Facts) {
		return func(f *Facts) {
			autoscaled(f)
			f.Autoscaler = Autoscaler{Present: true, Working: ptr.To(false), Message: message}
		}
	}
	tests := map[string]map[string]conditionCase{
		v1alpha1.ConditionAccepted: {
			"a valid spec": {change: func(f *Facts) { f.Capabilities.PodMonitor, f.Capabilities.PrometheusRule = true, true }, want: "True/Valid",
				wantText: []string{"the spec is valid"}},
			"the kinds of the monitors are not installed": {want: "True/Valid", wantText: []string{"no PodMonitor and no PrometheusRule is made", "spec.monitoring.podMonitor and spec.monitoring.prometheusRule: Disabled"}},
			"the kind of the alerts is not installed": {change: func(f *Facts) { f.Capabilities.PodMonitor = true }, want: "True/Valid",
				wantText: []string{"valid; no PrometheusRule is made", "spec.monitoring.prometheusRule: Disabled"}},
			"monitors that the spec disables": {change: func(f *Facts) {
				f.Pool.Spec.Monitoring = v1alpha1.Monitoring{PodMonitor: v1alpha1.Disabled, PrometheusRule: v1alpha1.Disabled}
			}, want: "True/Valid", wantNot: []string{"PodMonitor", "PrometheusRule"}},
			"a cluster that is neither a name nor a hash": {change: func(f *Facts) { f.Pool.Spec.Solana.Cluster = strings.Repeat("1", 40) }, want: "False/InvalidSpec",
				wantText: []string{"spec.solana.cluster", "32 bytes in base58", "40 characters"}},
			"a mint's field above the field's order": {change: func(f *Facts) {
				f.Pool.Spec.Pool.Mints = []v1alpha1.Mint{{Address: payerA().String(), Field: strings.Repeat("f", 64)}}
			}, want: "False/InvalidSpec", wantText: []string{"spec.pool.mints[0].field", "BN254"}},
			"swaps with a policy that blocks the router": {change: func(f *Facts) {
				f.Pool.Spec.Swap = &v1alpha1.Swap{Router: v1alpha1.Router{URL: "https://router.example"}}
				f.Pool.Spec.NetworkPolicy = &v1alpha1.NetworkPolicy{}
			}, want: "False/InvalidSpec", wantText: []string{"spec.networkPolicy.router"}},
			"an annotation of the service account that no object can have": {change: func(f *Facts) {
				f.Pool.Spec.Template.ServiceAccountAnnotations = map[string]string{"a b": "c"}
			}, want: "False/InvalidSpec", wantText: []string{"spec.template.serviceAccountAnnotations"}},
			"a signer's address that has no key": {change: signers(offCurve.String()), want: "False/InvalidSpec",
				wantText: []string{"spec.feePayers.signers[a].address", "32 bytes in base58"}},
			"a signer's address that is too short": {change: signers(strings.Repeat("2", 32)), want: "False/InvalidSpec",
				wantText: []string{"spec.feePayers.signers[a].address", "32 characters"}},
			"two signers with one address": {change: signers(signerA, signerA), want: "False/InvalidSpec",
				wantText: []string{"spec.feePayers.signers[b].address: is also the address of the signer a"}},
			"an invalid pod label": {change: func(f *Facts) { f.Pool.Spec.Template.Labels = map[string]string{"a b": "c"} }, want: "False/InvalidSpec",
				wantText: []string{"spec.template.labels"}},
			"an invalid label of a monitor": {change: func(f *Facts) { f.Pool.Spec.Monitoring.Labels = map[string]string{"release": "a b"} }, want: "False/InvalidSpec",
				wantText: []string{"spec.monitoring.labels"}},
		},
		v1alpha1.ConditionSecretsResolved: {
			"everything is there": {want: "True/Resolved"},
			"a Secret is missing": {change: badReference(v1alpha1.ReasonSecretNotFound), want: "False/SecretNotFound", wantText: []string{"Secret postgres"}},
			"a signer has a generated key": {change: func(f *Facts) {
				onlyRetiredKey(f)
				f.Keys.Keys[0].Address = signerA
				signers(signerA)(f)
			}, want: "False/DuplicateKey", wantText: []string{"spec.feePayers.signers[a]", signerA}},
			"nothing was read yet": {change: func(f *Facts) { f.References = refs.Facts{} }, want: "Unknown/NotChecked"},
			"an object was never read": {change: func(f *Facts) {
				f.References.Unread = []refs.Unread{{Kind: refs.Secret, Name: "postgres", Cause: "Forbidden"}}
			}, want: "Unknown/InternalError", wantText: []string{"Secret postgres (Forbidden)"}},
			"an object was read before, but cannot be read now": {change: func(f *Facts) {
				f.References.Unread = []refs.Unread{{Kind: refs.Secret, Name: "postgres", Cause: "Timeout", LastRead: now()}}
			}, want: "True/Resolved"},
			"the keys could not be read": {change: func(f *Facts) { f.KeysKnown = false; f.Unread[PartKeys] = errors.New("boom") }, want: "Unknown/InternalError"},
			"a profile does not parse": {change: func(f *Facts) {
				f.Pool.Spec.Pool.Profile = v1alpha1.Profile{ConfigMapRef: &v1alpha1.ConfigMapKeyReference{Name: "own", Key: "profile.yaml"}}
				f.References.Profile = []byte("base: nothing-of-ours")
				f.Target = targetOf(f.Pool, &f.References, (&parser{}).parse, nil)
			}, want: "False/ConfigMapMalformed", wantText: []string{"ConfigMap own, key profile.yaml", "base"}},
			"a verifying key is another file": {change: func(f *Facts) {
				f.References.VerifyingKey = []byte("{}")
				f.Target = targetOf(f.Pool, &f.References, (&parser{}).parse, nil)
			}, want: "False/ConfigMapMalformed", wantText: []string{"ConfigMap circuit, key vk", "verification_key.json"}},
		},
		v1alpha1.ConditionPoolInitialised: {
			"every check is ok":                 {want: "True/Initialised"},
			"an account is missing":             {change: chainReport(poolcheck.Failed, poolcheck.ReasonAccountMissing), want: "False/AccountMissing", wantText: []string{"POOL", "initialise it"}},
			"the chain was lost":                {change: chainLost, want: "Unknown/ChainUnavailable", wantText: []string{"endpoint main"}},
			"nothing was read yet":              {change: func(f *Facts) { f.Chain, f.ChainRead = chainwatch.Reading{}, false }, want: "Unknown/NotChecked"},
			"a new leader has read nothing yet": {change: newLeader, want: "True/Initialised"},
			"a new leader has read nothing yet, and the spec has changed": {change: func(f *Facts) { newLeader(f); olderGeneration(f) }, want: "Unknown/NotChecked"},
			"the profile is not resolved":                                 {change: func(f *Facts) { f.Target.Query.Target.Profile = nil }, want: "Unknown/ConfigurationIncomplete"},
			"something could not be checked": {change: chainReport(poolcheck.Unknown, poolcheck.ReasonConfigurationIncomplete), want: "Unknown/ConfigurationIncomplete",
				wantText: []string{"see the condition SecretsResolved"}},
		},
		v1alpha1.ConditionSpendingCapped: {
			"the spec sets no cap": {change: func(f *Facts) { f.Pool.Spec.FeePayers.SpendCaps = v1alpha1.SpendCaps{} }, want: "True/Capped",
				wantText: []string{"1000000000 lamports in any 24 hours", "spendCaps.transfersDayLamports"}},
			"the spec sets a cap for transfers": {change: func(f *Facts) { f.Pool.Spec.FeePayers.SpendCaps.TransfersDayLamports = new(int64(7_000_000)) }, want: "True/Capped",
				wantText: []string{"7000000 lamports"}},
			"no cap for transfers, but one for the day": {change: func(f *Facts) {
				f.Pool.Spec.FeePayers.SpendCaps = v1alpha1.SpendCaps{TransfersDayLamports: new(int64), DayLamports: 8_000_000}
			}, want: "True/Capped", wantText: []string{"8000000 lamports in any 24 hours", "spendCaps.dayLamports"}},
			"no cap for transfers, but one for the hour": {change: func(f *Facts) {
				f.Pool.Spec.FeePayers.SpendCaps = v1alpha1.SpendCaps{TransfersDayLamports: new(int64), HourLamports: 9_000_000}
			}, want: "True/Capped", wantText: []string{"9000000 lamports in any 60 minutes"}},
			"every cap is removed": {change: func(f *Facts) { f.Pool.Spec.FeePayers.SpendCaps = v1alpha1.SpendCaps{TransfersDayLamports: new(int64)} }, want: "False/NoSpendCap",
				wantText: []string{"set spec.feePayers.spendCaps.transfersDayLamports"}},
		},
		v1alpha1.ConditionKeysBackedUp: {
			"the spec generates no keys":  {want: none},
			"the spec asks for no copies": {change: generated(nil, false), want: none},
			"no copy is acknowledged":     {change: generated(&v1alpha1.KeyBackup{}, false), want: "False/NotBackedUp", wantText: []string{"kubectl annotate secret demo-payer-0-0 -n pools --overwrite relaypool.dev/backed-up=" + signerA}},
			"the copy is acknowledged":    {change: generated(&v1alpha1.KeyBackup{Required: true}, true), want: "True/BackedUp"},
			"the keys could not be read":  {change: func(f *Facts) { generated(&v1alpha1.KeyBackup{}, true)(f); f.KeysKnown = false }, want: "Unknown/InternalError"},
			"another key is not made yet": {change: func(f *Facts) {
				generated(&v1alpha1.KeyBackup{}, true)(f)
				f.Pool.Spec.FeePayers.Generate.Count = 2
			}, want: "Unknown/NotChecked"},
			"a copy is missing, and another key is not made yet": {change: func(f *Facts) {
				generated(&v1alpha1.KeyBackup{}, false)(f)
				f.Pool.Spec.FeePayers.Generate.Count = 2
			}, want: "False/NotBackedUp"},
		},
		v1alpha1.ConditionFeePayersFunded: {
			"a key without its required copy": {change: generated(&v1alpha1.KeyBackup{Required: true}, false), want: "False/Underfunded",
				wantText: []string{"do not fund the fee payer " + signerA + " yet", "relaypool.dev/backed-up=" + signerA}, wantNot: []string{"solana transfer", "send it"}},
			"a key without a copy that is not required": {change: generated(&v1alpha1.KeyBackup{}, false), want: "False/Underfunded", wantText: []string{"send it"}},
			"a key with its required copy":              {change: generated(&v1alpha1.KeyBackup{Required: true}, true), want: "False/Underfunded", wantText: []string{"send it"}},
			"a signer's address is funded":              {change: signers(signerA), want: "True/Funded"},
			"a signer's address is short":               {change: signers(signerA, signerB), want: "False/Underfunded", wantText: []string{signerB}, wantNot: []string{signerA}},
			"only signers pay": {change: func(f *Facts) {
				f.Pool.Spec.FeePayers, f.References.Payers = v1alpha1.FeePayers{}, nil
				signers(signerA)(f)
			}, want: "True/Funded"},
			"no generated key is usable beside a signer": {change: func(f *Facts) { onlyRetiredKey(f); signers(signerA)(f) }, want: "False/NoPayers",
				wantText: []string{"raise spec.feePayers.rotation.revision to 1"}},
			"all are above their minimum": {want: "True/Funded"},
			"one is below its minimum": {change: func(f *Facts) { f.Chain.Payers[payerA()] = chainwatch.Payer{Lamports: 12_345_678, At: now()} }, want: "False/Underfunded",
				wantText: []string{payerA().String(), "0.05 SOL", "send it 0.99 SOL (990000000 lamports)", "solana transfer"}},
			"one balance is unknown": {change: func(f *Facts) { delete(f.Chain.Payers, payerB()) }, want: "Unknown/BalancesUnknown", wantText: []string{payerB().String()}},
			"one is below its minimum and one is unknown": {change: func(f *Facts) {
				delete(f.Chain.Payers, payerB())
				f.Chain.Payers[payerA()] = chainwatch.Payer{At: now()}
			}, want: "False/Underfunded"},
			"a new leader has read nothing yet":                           {change: newLeader, want: "True/Funded"},
			"a new leader has read nothing yet, and the spec has changed": {change: func(f *Facts) { newLeader(f); olderGeneration(f) }, want: "Unknown/BalancesUnknown"},
			"a new leader has read nothing yet, and a payer is new": {change: func(f *Facts) {
				newLeader(f)
				f.References.Payers[0].Address = solana.PublicKey{3}.String()
			}, want: "Unknown/BalancesUnknown"},
			"there is no fee payer":                           {change: func(f *Facts) { f.References.Payers = nil }, want: "False/NoPayers"},
			"keys were not read":                              {change: func(f *Facts) { f.KeysKnown = false }, want: "Unknown/NotChecked"},
			"the chain was lost after the balances were read": {change: chainLost, want: "True/Funded"},
		},
		v1alpha1.ConditionAvailable: {
			"all are ready":               {want: "True/Available"},
			"the fleet could not be read": {change: partUnread(PartFleet), want: "Unknown/InternalError"},
			"the gate is closed":          {change: gateClosed, want: "False/Held", wantText: []string{"PoolInitialised", "spec.pool.gate: Warn"}},
			"somebody scaled the fleet to zero": {change: func(f *Facts) { f.Pool.Spec.Replicas = ptr.To[int32](0); setFleet(f, 0, 0) }, want: "False/ScaledToZero",
				wantText: []string{"kubectl scale relaypool demo"}},
			"a Secret of the pods is missing": {change: func(f *Facts) { badReference(v1alpha1.ReasonSecretNotFound)(f); f.Fleet = Fleet{} }, want: "False/NotDeployed", wantText: []string{"SecretsResolved"}},
			"the Deployment is foreign": {change: func(f *Facts) { f.Fleet = Fleet{} }, outcome: Outcome{Result: apply.Result{Foreign: []apply.Ref{deployment}}}, want: "False/NotDeployed",
				wantText: []string{"belongs to somebody else"}},
			"the pods would have a foreign service account": {change: func(f *Facts) { f.Fleet = Fleet{} }, outcome: withheld, want: "False/NotDeployed",
				wantText: []string{"belongs to somebody else", "the condition Stalled"}},
			"there is no fee payer": {change: func(f *Facts) { onlyRetiredKey(f); f.Fleet = Fleet{} }, want: "False/NotDeployed",
				wantText: []string{"the condition FeePayersFunded"}, wantNot: []string{"SecretsResolved"}},
			"a new fleet's optional kinds could not be read": {change: func(f *Facts) { f.Fleet = Fleet{}; partUnread(PartCapabilities)(f) }, want: "Unknown/InternalError"},
			"the Deployment was refused": {change: func(f *Facts) { f.Fleet = Fleet{} }, outcome: Outcome{Result: apply.Result{Refused: []apply.Refusal{{Ref: deployment, Reason: "Forbidden"}}}}, want: "False/NotDeployed",
				wantText: []string{"refused"}},
			"the operator is paused before the first pod": {change: func(f *Facts) { f.Fleet = Fleet{}; f.Pool.Spec.Paused = true }, want: "False/NotDeployed", wantText: []string{"spec.paused"}},
			"the fleet was just made":                     {change: func(f *Facts) { f.Fleet = Fleet{} }, want: "False/PodsNotReady"},
			"a pod crashes": {change: func(f *Facts) {
				setFleet(f, 2, 0)
				setRelayState(f, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s restarting failed container=relay pod=" + f.Fleet.Pods[0].Name}},
					corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error", Message: "starting\nrelay: --genesis-hash: expected 32 bytes\n"}})
			}, want: "False/PodsNotReady", wantText: []string{"CrashLoopBackOff", "exit code 2", "--genesis-hash: expected 32 bytes"}},
			"a pod runs again between two crashes": {change: func(f *Facts) {
				setFleet(f, 2, 0)
				setRelayState(f, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
					corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}})
			}, want: "False/PodsNotReady", wantText: []string{"CrashLoopBackOff", "exit code 137 (OOMKilled)"}},
			"an image cannot be fetched": {change: func(f *Facts) {
				setFleet(f, 2, 0)
				setRelayState(f, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "rpc error: 4711"}}, corev1.ContainerState{})
			}, want: "False/PodsNotReady", wantText: []string{"ImagePullBackOff", "relay:1", "imagePullSecrets"}},
			"the kubelet does not find a Secret": {change: func(f *Facts) {
				setFleet(f, 2, 0)
				setRelayState(f, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `secret "postgres" not found`}}, corev1.ContainerState{})
			}, want: "False/PodsNotReady", wantText: []string{"CreateContainerConfigError", "postgres"}},
			"no node has room for the pod": {change: func(f *Facts) {
				setFleet(f, 1, 0)
				f.Fleet.Pods[0].Status.Conditions = append(f.Fleet.Pods[0].Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes"})
			}, want: "False/PodsNotReady", wantText: []string{"Unschedulable", "kubectl describe pod -l app.kubernetes.io/instance=demo"}},
			"a quota prevents the creation of pods": {change: func(f *Facts) {
				setFleet(f, 1, 0)
				f.Fleet.Pods = nil
				f.Fleet.Deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: `pods "demo-7d9c5b8f6d-x2xz4" is forbidden: exceeded quota`}}
			}, want: "False/PodsNotReady", wantText: []string{"FailedCreate", "exceeded quota"}},
			"one of two is ready": {change: func(f *Facts) { setFleet(f, 2, 1) }, want: "True/RollingOut"},
			"a rollout is stuck while the old pods serve": {change: func(f *Facts) {
				setFleet(f, 2, 2)
				f.Fleet.Deployment.Status.UpdatedReplicas = 1
				f.Fleet.Deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
			}, want: "False/PodsNotReady", wantText: []string{"makes no progress"}},
		},
		v1alpha1.ConditionAutoscalingActive: {
			"the spec has no autoscaler":        {want: none},
			"the autoscaler works":              {change: autoscaled, want: "True/Scaling"},
			"the autoscaler has not reported":   {change: func(f *Facts) { autoscaled(f); f.Autoscaler = Autoscaler{Present: true} }, want: "Unknown/Pending"},
			"the autoscaler does not exist yet": {change: func(f *Facts) { autoscaled(f); f.Autoscaler = Autoscaler{} }, want: "Unknown/Pending"},
			"the gate is closed":                {change: func(f *Facts) { autoscaled(f); gateClosed(f) }, want: "Unknown/Pending"},
			"KEDA is not installed":             {change: func(f *Facts) { autoscaled(f); f.Pool.Spec.Autoscaling.Provider = v1alpha1.ProviderKEDA }, want: "False/ProviderMissing", wantText: []string{"scaledobjects.keda.sh"}},
			"nothing serves the metric": {change: func(f *Facts) {
				autoscaled(f)
				f.Autoscaler = Autoscaler{Present: true, Working: ptr.To(false), Message: "no metrics returned"}
			}, want: "False/MetricUnavailable", wantText: []string{"the HPA cannot read", "relaypool_backlog_submissions", "no metrics returned"}},
			"the API has no server": {change: autoscalerFails("the server could not find the requested resource"),
				want: "False/MetricUnavailable", wantText: []string{"no server of external metrics", "v1beta1.external.metrics.k8s.io is missing", "docs/guides/scaling.md"}},
			"the API's server does not answer": {change: autoscalerFails("the server is currently unable to handle the request (get relaypool_backlog_submissions.external.metrics.k8s.io)"),
				want: "False/MetricUnavailable", wantText: []string{"the adapter that the APIService", "does not answer"}},
			"another adapter has no value": {change: autoscalerFails("no metrics returned from external metrics API"),
				want: "False/MetricUnavailable", wantText: []string{"the cluster's adapter has no value", "Prometheus"}},
			"the controller cannot read the metric": {change: autoscalerFails(`relaypool_backlog_submissions.external.metrics.k8s.io is forbidden: User "x" cannot list resource`),
				want: "False/MetricUnavailable", wantText: []string{"cannot read relaypool_backlog_submissions"}},
			"the operator's server does not reach the pods": {change: autoscalerFails("unable to fetch metrics from external metrics API: the backlog of RelayPool n/demo is not known: its pods do not answer on port 9090 (i/o timeout)"),
				want: "False/MetricUnavailable", wantText: []string{"does not get it from the fleet's pods", "i/o timeout"}, wantNot: []string{"no server of"}},
			"KEDA does not reach the pods": {change: func(f *Facts) {
				autoscalerFails("boom")(f)
				f.Pool.Spec.Autoscaling.Provider, f.Capabilities.ScaledObject = v1alpha1.ProviderKEDA, true
			}, want: "False/MetricUnavailable", wantText: []string{"KEDA cannot read", "spec.networkPolicy.operationsFrom"}},
			"the size cannot be changed": {change: func(f *Facts) {
				autoscalerFails("the HPA controller was unable to update the target scale")(f)
				f.Autoscaler.Stuck = true
			}, want: "False/MetricUnavailable", wantText: []string{"the HPA cannot change the fleet's size"}, wantNot: []string{"cannot read"}},
			"waiting submissions are held by empty payers": {change: func(f *Facts) {
				autoscaled(f)
				f.Backlog = Backlog{At: now(), Held: map[string]int64{"fee_payer_empty": 7, "spend_cap_reached": 0}}
			}, want: "True/Limited", wantText: []string{"the HPA sizes the fleet", "(fee_payer_empty)", "FeePayersFunded"}, wantNot: []string{"spendCaps", "7"}},
			"waiting submissions are held by the RPC's budget": {change: func(f *Facts) {
				autoscaled(f)
				f.Backlog = Backlog{At: now(), Held: map[string]int64{"chain_unavailable": 7, "swap_price": 3}}
			}, want: "True/Limited", wantText: []string{"(chain_unavailable)", "spec.solana.endpoints"}},
			"submissions were held at the last reading, an hour ago": {change: func(f *Facts) {
				autoscaled(f)
				f.Backlog = Backlog{At: now().Add(-time.Hour), Old: true, Held: map[string]int64{"chain_unavailable": 7}}
			}, want: "True/Scaling"},
			"swaps wait for their price": {change: func(f *Facts) {
				autoscaled(f)
				f.Backlog = Backlog{At: now(), Held: map[string]int64{"swap_price": 7, "router_busy": 1, "no_route": 2}}
			}, want: "True/Scaling"},
			"some submissions are held and some are due": {change: func(f *Facts) {
				autoscaled(f)
				f.Backlog = Backlog{At: now(), Due: 1, Held: map[string]int64{"fee_payer_empty": 7}}
			}, want: "True/Scaling"},
			"the optional kinds could not be read": {change: func(f *Facts) { autoscaled(f); f.Unread[PartCapabilities] = errors.New("boom") }, want: "Unknown/InternalError"},
		},
		v1alpha1.ConditionExposed: {
			"the spec exposes nothing":            {want: none},
			"a Gateway serves the route":          {change: routed, want: "True/Exposed", wantText: []string{"spec.api.clientIPHeader is not set", "share one limit"}},
			"an ingress controller has answered":  {change: ingressed, want: "True/Exposed"},
			"no ingress controller has answered":  {change: func(f *Facts) { ingressed(f); f.Exposure.Addresses = nil }, want: "Unknown/Pending", wantText: []string{"Ingress demo", "spec.api.ingress.className"}},
			"the Gateway API is not installed":    {change: func(f *Facts) { routed(f); f.Capabilities.HTTPRoute = false }, want: "False/ProviderMissing", wantText: []string{"httproutes.gateway.networking.k8s.io", "spec.api.ingress"}},
			"no Gateway has reported":             {change: func(f *Facts) { routed(f); f.Exposure.Routes = nil }, want: "Unknown/Pending", wantText: []string{"Gateway gateways/public (listener https)"}},
			"only another Gateway has reported":   {change: func(f *Facts) { routed(f); f.Exposure.Routes[0].Gateway.Namespace = "" }, want: "Unknown/Pending"},
			"only another listener has reported":  {change: func(f *Facts) { routed(f); f.Exposure.Routes[0].Gateway.SectionName = "http" }, want: "Unknown/Pending"},
			"the Gateway's report is not current": {change: func(f *Facts) { routed(f); f.Exposure.Routes[0].Accepted = nil }, want: "Unknown/Pending"},
			"the Gateway does not allow the route": {change: func(f *Facts) {
				routed(f)
				f.Exposure.Routes[0].Accepted = &metav1.Condition{Type: "Accepted", Status: metav1.ConditionFalse, Reason: "NotAllowedByListeners", Message: "no listener allows it"}
			}, want: "False/NotAccepted", wantText: []string{"Gateway gateways/public (listener https)", "NotAllowedByListeners", "no listener allows it"}},
			"the Gateway does not find the Service": {change: func(f *Facts) {
				routed(f)
				f.Exposure.Routes[0].ResolvedRefs = &metav1.Condition{Type: "ResolvedRefs", Status: metav1.ConditionFalse, Reason: "BackendNotFound"}
			}, want: "False/NotAccepted", wantText: []string{"ResolvedRefs is False, BackendNotFound"}},
			"the second Gateway does not serve the route": {change: func(f *Facts) {
				routed(f)
				f.Pool.Spec.API.Gateway.ParentRefs = append(f.Pool.Spec.API.Gateway.ParentRefs, v1alpha1.GatewayReference{Name: "inside"})
			}, want: "Unknown/Pending", wantText: []string{"Gateway pools/inside"}},
			"the route is served and the Ingress is not": {change: func(f *Facts) { ingressed(f); routed(f); f.Exposure.Addresses = nil }, want: "Unknown/Pending"},
			"the proxy names the client": {change: func(f *Facts) { ingressed(f); f.Pool.Spec.API.ClientIPHeader = "X-Real-IP" },
				want: "True/Exposed", wantNot: []string{"clientIPHeader"}},
			"there is no limit that clients could share": {change: func(f *Facts) { ingressed(f); f.Pool.Spec.API.RequestsPerMinute = ptr.To[int32](0) },
				want: "True/Exposed", wantNot: []string{"clientIPHeader"}},
			"a load balancer has an address": {change: balanced, want: "True/Exposed", wantText: []string{"spec.api.service.externalTrafficPolicy is not Local", "share its limit"}, wantNot: []string{"behind the proxy"}},
			"a load balancer keeps the clients' addresses": {change: func(f *Facts) {
				balanced(f)
				f.Pool.Spec.API.Service.ExternalTrafficPolicy = v1alpha1.TrafficPolicyLocal
			}, want: "True/Exposed", wantNot: []string{"limit"}},
			"a proxy names the client to a load balancer": {change: func(f *Facts) { balanced(f); f.Pool.Spec.API.ClientIPHeader = "X-Real-IP" },
				want: "True/Exposed", wantNot: []string{"externalTrafficPolicy"}},
			"clients can pass the proxy by the Service": {change: func(f *Facts) {
				balanced(f)
				ingressed(f)
				f.Pool.Spec.API.ClientIPHeader = "X-Real-IP"
			}, want: "True/Exposed", wantText: []string{"without the proxy choose their address", "ClusterIP"}},
			"a load balancer has no address": {change: func(f *Facts) { balanced(f); f.Exposure.Service.Status = corev1.ServiceStatus{} },
				want: "Unknown/Pending", wantText: []string{"Service demo", "spec.api.service.loadBalancerClass"}},
			"a node port is open": {change: func(f *Facts) { nodePort(f); f.Exposure.Service.Spec.Type = corev1.ServiceTypeNodePort },
				want: "True/Exposed", wantText: []string{"externalTrafficPolicy"}},
			"the Service's type is not changed yet": {change: nodePort, want: "Unknown/Pending", wantText: []string{"Service demo does not have the type NodePort yet"}},
			"the Service is not made":               {change: func(f *Facts) { balanced(f); f.Exposure.Service = nil }, want: "Unknown/Pending"},
			"the Service is for the cluster alone":  {change: func(f *Facts) { balanced(f); f.Pool.Spec.API.Service.Type = v1alpha1.ServiceClusterIP }, want: none},
			"the API server refused the route's time limits": {change: func(f *Facts) { routed(f); f.Exposure.Routes = nil },
				outcome: refusedObject(build.KindHTTPRoute, apply.UnknownField), want: "False/Refused", wantText: []string{"HTTPRoute demo (UnknownField): no such thing", "Gateway API in version 1.2"}},
			"a policy refused the Ingress": {change: func(f *Facts) { ingressed(f); f.Exposure.Addresses = nil },
				outcome: refusedObject(build.KindIngress, "Forbidden"), want: "False/Refused", wantText: []string{"Ingress demo (Forbidden)"}, wantNot: []string{"Gateway API"}},
			"a quota refused the load balancer":    {change: balanced, outcome: refusedObject(build.KindService, "Forbidden"), want: "False/Refused"},
			"another object was refused":           {change: ingressed, outcome: refusedObject(build.KindPodMonitor, "Forbidden"), want: "True/Exposed"},
			"the Ingress could not be read":        {change: func(f *Facts) { ingressed(f); partUnread(PartExposure)(f) }, want: "Unknown/InternalError"},
			"the optional kinds could not be read": {change: func(f *Facts) { routed(f); partUnread(PartCapabilities)(f) }, want: "Unknown/InternalError"},
			"an Ingress needs no optional kind":    {change: func(f *Facts) { ingressed(f); partUnread(PartCapabilities)(f) }, want: "True/Exposed"},
		},
		v1alpha1.ConditionReady: {
			"no Gateway serves the route":            {change: func(f *Facts) { routed(f); f.Exposure.Routes = nil }, want: "Unknown/Pending"},
			"the exposure is not installed":          {change: func(f *Facts) { routed(f); f.Capabilities.HTTPRoute = false }, want: "False/ProviderMissing"},
			"all is well":                            {want: "True/Ready"},
			"all is well and the operator is paused": {change: func(f *Facts) { f.Pool.Spec.Paused = true }, want: "True/Paused"},
			"False comes before Unknown":             {change: func(f *Facts) { chainLost(f); setFleet(f, 2, 0) }, want: "False/PodsNotReady"},
			"the first False is copied":              {change: func(f *Facts) { badReference(v1alpha1.ReasonSecretMalformed)(f); setFleet(f, 2, 0) }, want: "False/SecretMalformed"},
			"the chain was lost":                     {change: chainLost, want: "Unknown/ChainUnavailable"},
			"the autoscaler does not work":           {change: func(f *Facts) { autoscaled(f); f.Autoscaler.Working = ptr.To(false) }, want: "False/MetricUnavailable"},
			"a foreign object prevents the creation of pods": {change: func(f *Facts) { f.Fleet = Fleet{} }, outcome: withheld, want: "False/ForeignObject",
				wantText: []string{"ServiceAccount demo", "Deployment demo is not made"}},
			"a foreign object without effect on clients": {outcome: Outcome{Result: apply.Result{Foreign: []apply.Ref{{Kind: build.KindPodMonitor, Name: "demo"}}}}, want: "False/ForeignObject"},
		},
		v1alpha1.ConditionReconciling: {
			"all is well":       {want: none},
			"pods are replaced": {change: func(f *Facts) { setFleet(f, 2, 2); f.Fleet.Deployment.Status.UpdatedReplicas = 1 }, want: "True/Progressing"},
			"the Deployment was written in this pass":  {outcome: Outcome{Applied: true, Result: apply.Result{Applied: []apply.Ref{deployment}}}, want: "True/Progressing"},
			"the Deployment was repaired in this pass": {outcome: Outcome{Applied: true, Result: apply.Result{Repaired: []apply.Ref{deployment}}}, want: "True/Progressing"},
			"another object was written":               {outcome: Outcome{Applied: true, Result: apply.Result{Applied: []apply.Ref{{Kind: build.KindService, Name: "demo"}}}}, want: none},
			"something could not be written":           {outcome: Outcome{Failed: true}, want: "True/Progressing"},
			"an object is being deleted":               {outcome: Outcome{Result: apply.Result{Waiting: []apply.Ref{deployment}}}, want: "True/Progressing", wantText: []string{"Deployment demo"}},
			"another manager contests a field":         {outcome: Outcome{Result: apply.Result{Contested: []apply.Ref{deployment}}}, want: "True/Progressing", wantText: []string{"repeatedly"}},
			"the RelayPool is stalled":                 {change: func(f *Facts) { setFleet(f, 2, 1) }, outcome: Outcome{Result: apply.Result{Foreign: []apply.Ref{deployment}}}, want: none},
			"the operator is paused":                   {change: func(f *Facts) { setFleet(f, 2, 1); f.Pool.Spec.Paused = true }, want: none},
			"a rollout is stuck": {change: func(f *Facts) {
				setFleet(f, 2, 1)
				f.Fleet.Deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
			}, want: none},
		},
		v1alpha1.ConditionStalled: {
			"all is well":      {want: none},
			"a foreign object": {outcome: Outcome{Result: apply.Result{Foreign: []apply.Ref{deployment}}}, want: "True/ForeignObject", wantText: []string{"Deployment demo"}},
			"a refused object": {outcome: Outcome{Result: apply.Result{Refused: []apply.Refusal{{Ref: deployment, Reason: "Forbidden", Message: "exceeded quota"}}}}, want: "True/Refused", wantText: []string{"Deployment demo", "exceeded quota"}},
			"an invalid spec":  {change: func(f *Facts) { f.Pool.Spec.Solana.Cluster = "x" }, want: "True/InvalidSpec"},
		},
	}
	for kind, cases := range tests {
		for name, tc := range cases {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				f := healthyFacts()
				if tc.change != nil {
					tc.change(f)
				}
				p := Decide(f, settings())
				got := meta.FindStatusCondition(Report(f, &p, &tc.outcome).Conditions, kind)
				tc.compare(t, got)
			})
		}
	}
}

func (tc conditionCase) compare(t *testing.T, got *metav1.Condition) {
	t.Helper()
	if got == nil {
		if tc.want != none {
			t.Fatalf("the condition is absent: want %s", tc.want)
		}
		return
	}
	if is := string(got.Status) + "/" + got.Reason; is != tc.want {
		t.Fatalf("condition %s (%s): want %s", is, got.Message, tc.want)
	}
	for _, words := range tc.wantText {
		if !strings.Contains(got.Message, words) {
			t.Errorf("message %q: want %q in it", got.Message, words)
		}
	}
	for _, words := range tc.wantNot {
		if strings.Contains(got.Message, words) {
			t.Errorf("message %q: want no %q in it", got.Message, words)
		}
	}
	for _, generated := range []string{"7d9c5b8f6d", "11111111-2222", "5m0s", "4711"} {
		if strings.Contains(got.Message, generated) {
			t.Errorf("message %q: %q differs from pod to pod or from time to time", got.Message, generated)
		}
	}
	if got.ObservedGeneration != 3 {
		t.Errorf("observed generation %d: want 3", got.ObservedGeneration)
	}
}

// A condition keeps the time of its transition while its status stays the same.
func TestTransitionTimes(t *testing.T) {
	t.Parallel()
	f := healthyFacts()
	f.Pool.Status = statusOf(t, f)
	f.Now = now().Add(time.Hour)
	setFleet(f, 2, 0)
	status := statusOf(t, f)
	if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAccepted).LastTransitionTime.Time; !got.Equal(now()) {
		t.Errorf("Accepted changed at %s: want %s", got, now())
	}
	if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAvailable).LastTransitionTime.Time; !got.Equal(f.Now) {
		t.Errorf("Available changed at %s: want %s", got, f.Now)
	}
}

// TestLastTransitionTimeFollowsTheStatus: a change of the reason alone keeps the time.
func TestLastTransitionTimeFollowsTheStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		v    verdict
		want bool // the time changes
	}{
		"nothing changed":                     {conditionTrue("SomeReason", "as before"), false},
		"another reason of the same status":   {conditionTrue("Other", "as before"), false},
		"another status with the same reason": {conditionFalse("SomeReason", "as before"), true},
		"the status becomes unknown":          {conditionUnknown("SomeReason", "as before"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthyFacts()
			f.Pool.Status.Conditions = []metav1.Condition{condition(f, v1alpha1.ConditionAvailable, conditionTrue("SomeReason", "as before"))}
			before := f.Now
			f.Now = before.Add(time.Hour)
			if got := condition(f, v1alpha1.ConditionAvailable, test.v).LastTransitionTime.Time; got.Equal(f.Now) != test.want || got.Equal(before) == test.want {
				t.Errorf("last transition %s; a new time is expected: %t", got, test.want)
			}
		})
	}
}

// ingressed gives the fleet an Ingress that a controller serves.
func ingressed(f *Facts) {
	f.Pool.Spec.API.Ingress = &v1alpha1.Ingress{Hosts: []string{"relay.example"}}
	f.Exposure.Addresses = []string{"203.0.113.7"}
}

// balanced gives the fleet a Service whose load balancer has addresses.
func balanced(f *Facts) {
	f.Pool.Spec.API.Service = &v1alpha1.Service{Type: v1alpha1.ServiceLoadBalancer}
	f.Exposure.Service = &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	f.Exposure.Service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.9"}, {Hostname: "lb.example"}}
}

// nodePort asks for a Service of the type NodePort; it still has another type.
func nodePort(f *Facts) {
	balanced(f)
	f.Pool.Spec.API.Service.Type = v1alpha1.ServiceNodePort
}

func refusedObject(kind schema.GroupVersionKind, reason string) Outcome {
	return Outcome{Result: apply.Result{Refused: []apply.Refusal{{Ref: apply.Ref{Kind: kind, Name: "demo"}, Reason: reason, Message: "no such thing"}}}}
}

// routed gives the fleet an HTTPRoute that a Gateway serves.
func routed(f *Facts) {
	gateway := v1alpha1.GatewayReference{Name: "public", Namespace: "gateways", SectionName: "https"}
	f.Pool.Spec.API.Gateway = &v1alpha1.Gateway{ParentRefs: []v1alpha1.GatewayReference{gateway}, Hostnames: []string{"routed.example"}}
	f.Capabilities.HTTPRoute = true
	isTrue := metav1.Condition{Status: metav1.ConditionTrue}
	f.Exposure.Routes = []RouteReport{{Gateway: gateway, Accepted: &isTrue, ResolvedRefs: &isTrue}}
}

func TestTheStatusHasTheHostsThatAreServed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*Facts)
		want   *v1alpha1.APIStatus
	}{
		"nothing is exposed":            {func(*Facts) {}, nil},
		"an Ingress without an address": {func(f *Facts) { ingressed(f); f.Exposure.Addresses = nil }, nil},
		"an Ingress and a route": {func(f *Facts) { ingressed(f); routed(f) },
			&v1alpha1.APIStatus{Hosts: []string{"relay.example", "routed.example"}, Addresses: []string{"203.0.113.7"}}},
		"a load balancer": {balanced, &v1alpha1.APIStatus{Addresses: []string{"203.0.113.9", "lb.example"}}},
		"a host of both": {func(f *Facts) {
			ingressed(f)
			routed(f)
			f.Pool.Spec.API.Gateway.Hostnames = f.Pool.Spec.API.Ingress.Hosts
		}, &v1alpha1.APIStatus{Hosts: []string{"relay.example"}, Addresses: []string{"203.0.113.7"}}},
		"a route that is not served": {func(f *Facts) { routed(f); f.Exposure.Routes = nil }, nil},
		"what cannot be read keeps its value": {func(f *Facts) {
			ingressed(f)
			f.Unread[PartExposure] = errors.New("boom")
			f.Pool.Status.API = &v1alpha1.APIStatus{Hosts: []string{"earlier.example"}}
		}, &v1alpha1.APIStatus{Hosts: []string{"earlier.example"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthyFacts()
			tc.change(f)
			if diff := cmp.Diff(tc.want, apiStatus(f)); diff != "" {
				t.Errorf("status.api (-want +got):\n%s", diff)
			}
		})
	}
}
