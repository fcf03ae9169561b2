package setup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	groth16 "github.com/consensys/gnark/backend/groth16/bn254"
	cs "github.com/consensys/gnark/constraint/bn254"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"

	"github.com/relaypool/relaypool/hack/circuit/transaction"
)

const keysFile = "keys.bin"

var errDamaged = errors.New("the checksum does not match")

// Keys are the compiled circuit, its proving key and its verifying key.
type Keys struct {
	Circuit   *cs.R1CS
	Proving   *groth16.ProvingKey
	Verifying *groth16.VerifyingKey
}

// Compile compiles the transaction circuit to constraints.
func Compile() (*cs.R1CS, error) {
	compiled, err := frontend.Compile(ecc.BN254.ScalarField(), r1cs.NewBuilder, &transaction.Circuit{})
	if err != nil {
		return nil, fmt.Errorf("compile the circuit: %w", err)
	}
	circuit, ok := compiled.(*cs.R1CS)
	if !ok {
		return nil, fmt.Errorf("compile the circuit: want constraints over BN254, received %T", compiled)
	}
	return circuit, nil
}

// Load reads the keys of the transaction circuit for Seed from the folder cache. If they are
// missing or damaged there, it makes and stores them. It reports slow steps to progress.
func Load(cache string, progress io.Writer) (*Keys, error) {
	circuit, err := Compile()
	if err != nil {
		return nil, err
	}
	name, err := cacheName(circuit)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(cache, name, keysFile)
	keys, err := read(path)
	switch {
	case err == nil:
		keys.Circuit = circuit
		return keys, nil
	case errors.Is(err, os.ErrNotExist):
		fmt.Fprintf(progress, "circuit: no keys cached for this circuit, making them (%d constraints)\n", circuit.GetNbConstraints())
	default:
		fmt.Fprintf(progress, "circuit: the cached keys in %s are unusable (%v), making them again\n", path, err)
	}
	start := time.Now()
	if keys, err = Make(circuit, Seed); err != nil {
		return nil, err
	}
	if err := write(path, keys); err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "circuit: keys made in %.1f s\n", time.Since(start).Seconds())
	return keys, nil
}

// Make runs the set-up for a circuit. The same circuit and seed give the same keys on every
// machine. Make replaces crypto/rand.Reader while it runs: no other goroutine may use it then.
func Make(circuit *cs.R1CS, seed string) (*Keys, error) {
	trapdoor, err := DeriveTrapdoor(seed)
	if err != nil {
		return nil, err
	}
	pk, vk, err := generate(circuit, trapdoor)
	if err != nil {
		return nil, err
	}
	return &Keys{Circuit: circuit, Proving: pk, Verifying: vk}, nil
}

// cacheName is the folder name of a circuit's keys: a hash of the circuit and Seed.
func cacheName(circuit *cs.R1CS) (string, error) {
	h := sha256.New()
	if _, err := circuit.WriteTo(h); err != nil {
		return "", fmt.Errorf("hash the circuit: %w", err)
	}
	h.Write([]byte(trapdoorDomain + Seed))
	return hex.EncodeToString(h.Sum(nil)), nil
}

// read returns the keys of a file. The file has the sha256 of its remaining content, the verifying
// key and the proving key.
func read(path string) (*Keys, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(content) < sha256.Size {
		return nil, errDamaged
	}
	body := content[sha256.Size:]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], content[:sha256.Size]) {
		return nil, errDamaged
	}
	keys := &Keys{Proving: new(groth16.ProvingKey), Verifying: new(groth16.VerifyingKey)}
	r := bytes.NewReader(body)
	// The unsafe reads do not check the points, because the checksum covers them.
	if _, err := keys.Verifying.UnsafeReadFrom(r); err != nil {
		return nil, fmt.Errorf("read verifying key: %w", err)
	}
	if _, err := keys.Proving.UnsafeReadFrom(r); err != nil {
		return nil, fmt.Errorf("read proving key: %w", err)
	}
	return keys, nil
}

// write writes the keys to a temporary file and renames it, so that no process reads an incomplete
// file.
func write(path string, keys *Keys) error {
	var body bytes.Buffer
	if _, err := keys.Verifying.WriteRawTo(&body); err != nil {
		return fmt.Errorf("encode verifying key: %w", err)
	}
	if _, err := keys.Proving.WriteRawTo(&body); err != nil {
		return fmt.Errorf("encode proving key: %w", err)
	}
	sum := sha256.Sum256(body.Bytes())
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("make cache folder: %w", err)
	}
	f, err := os.CreateTemp(folder, keysFile+".*")
	if err != nil {
		return fmt.Errorf("write keys: %w", err)
	}
	_, err = f.Write(append(sum[:], body.Bytes()...))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write keys: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
