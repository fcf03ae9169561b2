package pool

import (
	"strings"
	"testing"
)

// TestMintFieldElements: with a mint field that is not an element of the scalar field, the
// relay's pods would exit at their start.
func TestMintFieldElements(t *testing.T) {
	t.Parallel()
	const below = "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000000"
	for name, test := range map[string]struct {
		digits string
		want   bool
	}{
		"zero":                                   {strings.Repeat("0", 64), true},
		"the largest element":                    {below, true},
		"the largest element in capital letters": {strings.ToUpper(below), true},
		"the order of the field":                 {fieldModulus, false},
		"the largest number of 32 bytes":         {strings.Repeat("f", 64), false},
		"one digit too few":                      {below[1:], false},
		"two digits too many":                    {"00" + below, false},
		"a letter that is not a digit":           {"g" + below[1:], false},
		"nothing":                                {"", false},
		"digits with the prefix 0x":              {"0x" + below[2:], false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := fieldElement(test.digits); (err == nil) != test.want {
				t.Errorf("%q is accepted: %t (%v), want %t", test.digits, err == nil, err, test.want)
			}
		})
	}
}
