package build

import (
	"strconv"
	"strings"
	"time"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

// environment collects variables in the order in which they are set.
type environment []*corev1ac.EnvVarApplyConfiguration

func (e *environment) set(name, value string) {
	*e = append(*e, corev1ac.EnvVar().WithName(name).WithValue(value))
}

// setUnlessEmpty sets a variable, unless the value is empty. Without the variable, the relay's own
// default applies.
func (e *environment) setUnlessEmpty(name, value string) {
	if value != "" {
		e.set(name, value)
	}
}

// setUnlessZero sets a variable, unless the number is 0. The 0 stands for a field that is not set.
func (e *environment) setUnlessZero(name string, n int64) {
	if n != 0 {
		e.set(name, strconv.FormatInt(n, 10))
	}
}

// setOptional sets a variable, unless the number is nil. Unlike setUnlessZero, it also sets a 0.
func setOptional[N int32 | int64](e *environment, name string, n *N) {
	if n != nil {
		e.set(name, strconv.FormatInt(int64(*n), 10))
	}
}

// lower returns an enum value of the RelayPool in the relay's spelling.
func lower[S ~string](value S) string { return strings.ToLower(string(value)) }

// serveEnvironment returns the environment of the command `relay serve`.
func serveEnvironment(in Input) []*corev1ac.EnvVarApplyConfiguration {
	spec := &in.Pool.Spec
	var e environment
	e.set(contract.EnvListen, ":"+strconv.Itoa(contract.APIPort))
	e.set(contract.EnvOperationsListen, ":"+strconv.Itoa(contract.OperationsPort))
	e.set(contract.EnvTemporaryFolder, contract.TemporaryFolder)
	e.shared(spec)
	e.pool(&spec.Pool)
	e.payers(in.Payers, &spec.FeePayers)
	e.setUnlessEmpty(contract.EnvLookupTable, spec.Solana.LookupTable)
	e.setUnlessEmpty(contract.EnvTransactionFormat, transactionFormat(spec.Solana.TransactionFormat))
	e.swap(spec.Swap)
	e.set(contract.EnvCompliancePublicKey, spec.ViewingKeys.CompliancePublicKey)
	if len(spec.ViewingKeys.Messages) > 0 {
		e.set(contract.EnvSignInMessagesFile, contract.SignInMessagesFile)
	}
	e.setUnlessZero(contract.EnvConcurrency, int64(spec.Concurrency))
	e.clients(&spec.API)
	e.memory(resources(spec.Template.Resources))
	return e
}

// transactionFormat returns the relay's name of a format, and an empty text for the relay's
// default. Fleets that are older than spec.solana.transactionFormat lack the variable. Setting it
// to the default would replace their pods for nothing.
func transactionFormat(f v1alpha1.TransactionFormat) string {
	switch f {
	case v1alpha1.FormatLegacy:
		return ""
	case v1alpha1.FormatVersion1:
		return "v1"
	default:
		return lower(f)
	}
}

// shared adds the variables that every relay command needs to use the database and the chain.
func (e *environment) shared(spec *v1alpha1.RelayPoolSpec) {
	e.set(contract.EnvDatabaseURLFile, contract.DatabaseURLFile)
	if spec.Database.CAFrom != nil {
		e.set(contract.EnvDatabaseCAFile, contract.DatabaseCAFile)
	}
	if spec.Database.ClientCertificateSecretRef != nil {
		e.set(contract.EnvDatabaseClientCertFile, contract.DatabaseClientCertFile)
		e.set(contract.EnvDatabaseClientKeyFile, contract.DatabaseClientKeyFile)
	}
	e.setUnlessZero(contract.EnvDatabaseMaxConns, int64(spec.Database.MaxConnections))
	e.set(contract.EnvRPCEndpointsFile, contract.EndpointsFile)
	e.set(contract.EnvGenesisHash, contract.GenesisHash(spec.Solana.Cluster))
	setOptional(e, contract.EnvPriorityFloor, spec.Solana.PriorityFee.FloorMicroLamports)
	setOptional(e, contract.EnvPriorityCap, spec.Solana.PriorityFee.CapMicroLamports)
	setOptional(e, contract.EnvPriorityPercentile, spec.Solana.PriorityFee.Percentile)
	setOptional(e, contract.EnvMaxEarlyFees, spec.Solana.PriorityFee.MaxEarlyFeesLamports)
	e.setUnlessEmpty(contract.EnvLogLevel, lower(spec.Template.LogLevel))
	e.set(contract.EnvLogFormat, "json")
}

func (e *environment) pool(pool *v1alpha1.Pool) {
	e.setUnlessEmpty(contract.EnvProfile, pool.Profile.Name)
	if pool.Profile.ConfigMapRef != nil {
		e.set(contract.EnvProfileFile, contract.ProfileFile)
	}
	e.setUnlessEmpty(contract.EnvProgramID, pool.ProgramID)
	e.setUnlessZero(contract.EnvRootHistorySize, int64(pool.RootHistorySize))
	mints := make([]string, len(pool.Mints))
	for i, m := range pool.Mints {
		mints[i] = m.Address + "=" + m.Field
	}
	e.setUnlessEmpty(contract.EnvMint, strings.Join(mints, ","))
	e.set(contract.EnvVerifyingKey, contract.VerifyingKeyFile)
	e.setUnlessEmpty(contract.EnvProofA, lower(pool.ProofAEncoding))
	if pool.OffCurveRecipients == "Allow" {
		e.set(contract.EnvOffCurveRecipient, "true")
	}
}

func (e *environment) payers(mounts []PayerMount, payers *v1alpha1.FeePayers) {
	e.setUnlessEmpty(contract.EnvFeePayerKeyFile, strings.Join(payerFiles(mounts), ","))
	if len(payers.Signers) > 0 {
		e.set(contract.EnvFeePayerSignersFile, contract.SignersFile)
	}
	setOptional(e, contract.EnvFeePayerMinBalance, payers.MinimumBalanceLamports)
	e.setUnlessZero(contract.EnvSpendCapHour, payers.SpendCaps.HourLamports)
	e.setUnlessZero(contract.EnvSpendCapDay, payers.SpendCaps.DayLamports)
	setOptional(e, contract.EnvSpendCapTransfersDay, payers.SpendCaps.TransfersDayLamports)
}

func (e *environment) swap(swap *v1alpha1.Swap) {
	if swap == nil {
		return
	}
	e.setUnlessEmpty(contract.EnvRouterURL, swap.Router.URL)
	if swap.Router.URLSecretRef != nil {
		e.set(contract.EnvRouterURLFile, contract.RouterURLFile)
	}
	if swap.Router.APIKeySecretRef != nil {
		e.set(contract.EnvRouterAPIKeyFile, contract.RouterAPIKeyFile)
	}
	if swap.Router.CAFrom != nil {
		e.set(contract.EnvRouterCAFile, contract.RouterCAFile)
	}
	if len(swap.FallbackRouters) > 0 {
		e.set(contract.EnvRouterFallbacksFile, contract.FallbackRoutersFile)
	}
	e.setUnlessEmpty(contract.EnvRouterProgram, swap.Router.ProgramID)
	if ms := swap.Router.TimeoutMilliseconds; ms != 0 {
		e.set(contract.EnvRouterTimeout, (time.Duration(ms) * time.Millisecond).String())
	}
	setOptional(e, contract.EnvRouterRequests, swap.Router.RequestsPerSecond)
	e.setUnlessZero(contract.EnvSwapSlippage, int64(swap.SlippageBps))
	e.setUnlessZero(contract.EnvSwapConcurrency, int64(swap.Concurrency))
}

func (e *environment) clients(api *v1alpha1.API) {
	if h := api.RetentionHours; h != 0 {
		e.set(contract.EnvRetention, strconv.Itoa(int(h))+"h")
	}
	if s := api.WaitSeconds; s != nil {
		e.set(contract.EnvWait, strconv.Itoa(int(*s))+"s")
	}
	setOptional(e, contract.EnvRateLimit, api.RequestsPerMinute)
	e.setUnlessEmpty(contract.EnvClientIPHeader, api.ClientIPHeader)
	e.setUnlessEmpty(contract.EnvCORSOrigins, strings.Join(api.CORSOrigins, ","))
	if api.KeysSecretRef != nil {
		e.set(contract.EnvAPIKeysFile, contract.APIKeysFile)
	}
}
