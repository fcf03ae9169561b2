package shieldpool

import (
	"bytes"
	"testing"
)

func FuzzParsePublicInputs(f *testing.F) {
	for _, v := range load[[]snarkjsProof](f, "snarkjs_proofs.json") {
		f.Add(unhex(f, v.PublicInputsHex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := ParsePublicInputs(b)
		if err == nil && !bytes.Equal(in.Bytes(), b) {
			t.Error("encoding what was decoded gives other bytes")
		}
	})
}

func FuzzParseNotes(f *testing.F) {
	f.Add(unhex(f, "434c564b01020300aabbcc0300ddeeff"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		notes, err := ParseNotes(b)
		if err != nil {
			return
		}
		back, err := EncodeNotes(notes)
		if err != nil || !bytes.Equal(back, b) {
			t.Errorf("encoding what was decoded gives other bytes (%v)", err)
		}
		if len(b) != NoteEnvelopeSize(notes) {
			t.Errorf("size is %d, want %d", NoteEnvelopeSize(notes), len(b))
		}
	})
}

func FuzzParseData(f *testing.F) {
	p := ShieldPoolV1()
	in, err := ParsePublicInputs(unhex(f, load[[]snarkjsProof](f, "snarkjs_proofs.json")[2].PublicInputsHex))
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range []*Call{
		{Proof: make([]byte, ProofLength), Inputs: in},
		{Proof: make([]byte, ProofLength), Inputs: in, Notes: [][]byte{{1, 2}, {3}}, Destination: Destination{Swap: &SwapTerms{MinOutput: 9}}},
	} {
		data, err := p.Data(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = p.Leaves(b)
		c, err := p.ParseData(b)
		if err != nil {
			return
		}
		if back, err := p.Data(c); err != nil || !bytes.Equal(back, b) {
			t.Errorf("encoding what was decoded gives other bytes (%v)", err)
		}
	})
}

func FuzzParseTree(f *testing.F) {
	p := ShieldPoolV1()
	f.Add(treeWithLeaves(f, p, 3).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, err := p.ParseTree(b)
		if err != nil {
			return
		}
		if !bytes.Equal(tree.Bytes(), b[:p.TreeLength()]) {
			t.Error("encoding what was decoded gives other bytes")
		}
		_ = tree.SelfCheck()
		_ = tree.LeavesUntilEviction(tree.Root)
	})
}

func FuzzParseSwapState(f *testing.F) {
	f.Add((&SwapState{MinOutput: 1}).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := ParseSwapState(b); err == nil && len(s.Bytes()) != SwapStateLength {
			t.Error("encoding what was decoded has another length")
		}
	})
}

func FuzzParseTransactionError(f *testing.F) {
	f.Add([]byte(`{"InstructionError":[2,{"Custom":4097}]}`))
	f.Add([]byte(`"AlreadyProcessed"`))
	p := ShieldPoolV1()
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseTransactionError(b)
		if err == nil && e != nil && (e.Error() == "" && e.Kind != "" || p.ClassOfTransaction(e, PoolInstruction) == "") {
			t.Errorf("%+v has no text or class", e)
		}
	})
}
