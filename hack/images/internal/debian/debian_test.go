package debian

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLibrariesAreReadFromTheLinkersList(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text  string
		want  []string
		fails string
	}{
		"libraries, the linker and the kernel's own": {
			text: "\tlinux-vdso.so.1 (0x00007f997b1b6000)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f997afa1000)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f997b1b8000)\n",
			want: []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"},
		},
		"a library that is missing": {text: "\tlibz.so.1 => not found\n", fails: "libz.so.1 => not found: install"},
		"a static program":          {text: "\tstatically linked\n", fails: "static"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseLdd(tt.text)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Fatalf("error is %v, want one with %q", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("libraries (-want +got):\n%s", diff)
			}
		})
	}
}
