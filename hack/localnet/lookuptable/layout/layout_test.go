package layout_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/gagliardetto/solana-go"
	addresslookuptable "github.com/gagliardetto/solana-go/programs/address-lookup-table"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/lookuptable/layout"
)

func filled(b byte) solana.PublicKey {
	return solana.PublicKeyFromBytes(bytes.Repeat([]byte{b}, solana.PublicKeyLength))
}

// The layout as it is published: kind, deactivation slot, last extended slot
// and its start, authority behind a tag, two bytes of padding.
func TestTheHeaderIsThePublishedOne(t *testing.T) {
	t.Parallel()
	authority := filled(7)
	h := layout.Header{DeactivationSlot: layout.Never, LastExtendedSlot: 0x0102, LastExtendedStart: 3, Authority: &authority}
	want := bytes.Join([][]byte{
		{1, 0, 0, 0}, bytes.Repeat([]byte{255}, 8), {2, 1, 0, 0, 0, 0, 0, 0}, {3}, {1}, bytes.Repeat([]byte{7}, 32), {0, 0},
	}, nil)
	if diff := cmp.Diff(want, h.Bytes()); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	if len(want) != layout.HeaderSize {
		t.Errorf("it has %d bytes, want %d", len(want), layout.HeaderSize)
	}
}

func TestAnotherLibraryReadsTheSame(t *testing.T) {
	t.Parallel()
	authority, addresses := filled(7), solana.PublicKeySlice{filled(1), filled(2)}
	for name, want := range map[string]layout.Header{
		"an active table":        {DeactivationSlot: layout.Never, LastExtendedSlot: 9, LastExtendedStart: 1, Authority: &authority},
		"a deactivated table":    {DeactivationSlot: 77, Authority: &authority},
		"a table that is frozen": {DeactivationSlot: layout.Never},
	} {
		data := want.Bytes()
		for _, key := range addresses {
			data = append(data, key[:]...)
		}
		got, err := layout.Parse(data[:layout.HeaderSize], len(data))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s, read back (-want +got):\n%s", name, diff)
		}
		other, err := addresslookuptable.DecodeAddressLookupTableState(data)
		if err != nil {
			t.Fatal(err)
		}
		if other.DeactivationSlot != want.DeactivationSlot || other.LastExtendedSlot != want.LastExtendedSlot ||
			other.LastExtendedSlotStartIndex != want.LastExtendedStart || !cmp.Equal(other.Authority, want.Authority) ||
			!cmp.Equal(other.Addresses, addresses) {
			t.Errorf("%s: solana-go reads %+v, want %+v with two addresses", name, other, want)
		}
	}
}

func TestWhatIsNoTableIsRefused(t *testing.T) {
	t.Parallel()
	good := (&layout.Header{}).Bytes()
	with := func(at int, b byte) []byte {
		data := bytes.Clone(good)
		data[at] = b
		return data
	}
	tests := map[string]struct {
		header []byte
		size   int
		want   error
	}{
		"a header cut short":      {good[1:], 55, layout.ErrInvalid},
		"half an address":         {good, 57, layout.ErrInvalid},
		"a table never made":      {with(0, 0), 56, layout.ErrUninitialized},
		"an unknown kind":         {with(0, 2), 56, layout.ErrInvalid},
		"a broken authority flag": {with(21, 2), 56, layout.ErrInvalid},
	}
	for name, test := range tests {
		if _, err := layout.Parse(test.header, test.size); !errors.Is(err, test.want) {
			t.Errorf("%s gives %v, want %v", name, err, test.want)
		}
	}
}

func TestAddressesServeFromTheNextSlotOn(t *testing.T) {
	t.Parallel()
	h := layout.Header{LastExtendedSlot: 10, LastExtendedStart: 3}
	for slot, want := range map[uint64]int{10: 3, 11: 5} {
		if got := h.Usable(layout.Size(5), slot); got != want {
			t.Errorf("at slot %d it has %d usable addresses, want %d", slot, got, want)
		}
	}
}
