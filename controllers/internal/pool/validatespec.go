package pool

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/gagliardetto/solana-go"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

// Genesis returns the genesis hash of a cluster. The argument is the cluster's name, or the
// hash itself in base58.
func Genesis(cluster string) (solana.Hash, error) {
	hash, err := solana.HashFromBase58(contract.GenesisHash(cluster))
	if err != nil {
		return solana.Hash{}, fmt.Errorf("expected mainnet-beta, devnet, testnet or 32 bytes in base58, received another value of %d characters", len(cluster))
	}
	return hash, nil
}

// fieldModulus is the order of BN254's scalar field, in hexadecimal. A mint's field element is
// a public input of proofs, so it must be smaller.
const fieldModulus = "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001"

// faults lists what is wrong with a spec that the API server accepts. Each fault names the
// field, what was expected and the kind of value received.
func faults(spec *v1alpha1.RelayPoolSpec) []string {
	var out []string
	add := func(field string, err error) {
		if err != nil {
			out = append(out, fmt.Sprintf("spec.%s: %v", field, err))
		}
	}
	_, err := Genesis(spec.Solana.Cluster)
	add("solana.cluster", err)
	add("solana.lookupTable", optionalKey(spec.Solana.LookupTable))
	add("pool.programID", optionalKey(spec.Pool.ProgramID))
	var fields []string
	for i, m := range spec.Pool.Mints {
		add(fmt.Sprintf("pool.mints[%d].address", i), optionalKey(m.Address))
		add(fmt.Sprintf("pool.mints[%d].field", i), fieldElement(m.Field))
		if slices.Contains(fields, m.Field) {
			add(fmt.Sprintf("pool.mints[%d].field", i), errors.New("is already used by another mint: each mint needs its own field element"))
		}
		fields = append(fields, m.Field)
	}
	signers := map[string]string{} // names by address
	for _, s := range spec.FeePayers.Signers {
		field := fmt.Sprintf("feePayers.signers[%s].address", s.Name)
		add(field, signerAddress(s.Address))
		if other, ok := signers[s.Address]; ok {
			add(field, fmt.Errorf("is also the address of the signer %s: name each fee payer once", other))
		}
		signers[s.Address] = s.Name
	}
	if spec.Swap != nil {
		add("swap.router.programID", optionalKey(spec.Swap.Router.ProgramID))
		if spec.NetworkPolicy != nil && len(spec.NetworkPolicy.Router) == 0 {
			add("networkPolicy.router", errors.New("expected the swap router's addresses, received none: list its addresses and port, or remove spec.swap"))
		}
	}
	return append(out, labelFaults(spec)...)
}

// labelFaults lists the invalid labels, annotations and node selectors of a spec. The API
// server would refuse the objects that are made with them, but would not name the spec's
// field.
func labelFaults(spec *v1alpha1.RelayPoolSpec) []string {
	var out []string
	t := &spec.Template
	for _, set := range []struct {
		field  string
		labels map[string]string
	}{{"template.labels", t.Labels}, {"template.nodeSelector", t.NodeSelector}, {"monitoring.labels", spec.Monitoring.Labels}} {
		for key, value := range set.labels {
			for _, fault := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...) {
				out = append(out, fmt.Sprintf("spec.%s: %s", set.field, fault))
			}
		}
	}
	for field, annotations := range map[string]map[string]string{"annotations": t.Annotations, "serviceAccountAnnotations": t.ServiceAccountAnnotations} {
		for key := range annotations {
			for _, fault := range validation.IsQualifiedName(key) {
				out = append(out, fmt.Sprintf("spec.template.%s: %s", field, fault))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func optionalKey(address string) error {
	if address == "" {
		return nil
	}
	if _, err := solana.PublicKeyFromBase58(address); err != nil {
		return fmt.Errorf("expected 32 bytes in base58, received %d characters that are not", len(address))
	}
	return nil
}

// signerAddress returns what is wrong with the address of a signer. An address that is not on the
// curve has no key, and the relay would exit at its start.
func signerAddress(address string) error {
	key, err := solana.PublicKeyFromBase58(address)
	if err != nil || key.IsZero() || !key.IsOnCurve() {
		return fmt.Errorf("expected the address of an ed25519 key, 32 bytes in base58, received %d characters that are not", len(address))
	}
	return nil
}

func fieldElement(digits string) error {
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != 32 {
		return fmt.Errorf("expected 64 hexadecimal digits, received %d characters", len(digits))
	}
	modulus, ok := new(big.Int).SetString(fieldModulus, 16)
	if !ok || new(big.Int).SetBytes(raw).Cmp(modulus) >= 0 {
		return errors.New("expected an element of the BN254 scalar field, received a number that is not below its order")
	}
	return nil
}
