package wallet

import (
	"encoding/hex"
	"strconv"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/relaypool/relaypool/relay/merkle"
)

// wireWitness is a witness in the JSON that hack/circuit reads. Numbers are strings.
type wireWitness struct {
	Root          string            `json:"root"`
	PublicAmount  string            `json:"public_amount"`
	ExtDataHash   string            `json:"ext_data_hash"`
	MintAddress   string            `json:"mint_address"`
	Nullifiers    [slots]string     `json:"nullifiers"`
	Commitments   [slots]string     `json:"commitments"`
	ChainNoteHash string            `json:"chain_note_hash"`
	Inputs        [slots]wireInput  `json:"inputs"`
	Outputs       [slots]wireOutput `json:"outputs"`
	Timestamp     string            `json:"timestamp"`
	Which         string            `json:"which"`
}

type wireInput struct {
	Amount   string                `json:"amount"`
	Secret   string                `json:"secret"`
	Blinding string                `json:"blinding"`
	Index    string                `json:"index"`
	Path     [merkle.Height]string `json:"path"`
	Used     bool                  `json:"used"`
}

type wireOutput struct {
	Amount   string `json:"amount"`
	OwnerKey string `json:"owner_key"`
	Blinding string `json:"blinding"`
}

func (w *Witness) wire() wireWitness {
	public := &w.PublicInputs
	out := wireWitness{
		Root:          bytesText(public.Root),
		PublicAmount:  strconv.FormatInt(public.PublicAmount, 10),
		ExtDataHash:   bytesText(public.ExtDataHash),
		MintAddress:   bytesText(public.MintAddress),
		ChainNoteHash: bytesText(public.ChainNoteHash),
		Timestamp:     strconv.FormatInt(w.timestamp, 10),
		Which:         "0",
	}
	for i := range slots {
		in, note := &w.inputs[i], &w.outputs[i]
		out.Nullifiers[i] = bytesText(public.Nullifiers[i])
		out.Commitments[i] = bytesText(public.Commitments[i])
		out.Inputs[i] = wireInput{
			Amount:   strconv.FormatUint(in.note.Amount, 10),
			Secret:   elementText(in.note.Secret),
			Blinding: elementText(in.note.Blinding),
			Index:    strconv.FormatUint(in.note.Index, 10),
			Used:     in.used,
		}
		for level := range in.path {
			out.Inputs[i].Path[level] = elementText(in.path[level])
		}
		out.Outputs[i] = wireOutput{
			Amount:   strconv.FormatUint(note.Amount, 10),
			OwnerKey: elementText(note.OwnerKey()),
			Blinding: elementText(note.Blinding),
		}
	}
	return out
}

func elementText(e fr.Element) string {
	return bytesText(e.Bytes())
}

func bytesText(b [32]byte) string {
	return "0x" + hex.EncodeToString(b[:])
}
