package httpapi

import (
	"net/http"
	"testing"
)

func TestTheFormatThatAClientPrefers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		accept, encoding string
		want             format
	}{
		"no preference":                           {want: plainJSON},
		"a browser":                               {accept: "*/*", encoding: "gzip, deflate, br, zstd", want: zstdJSON},
		"a client without zstd":                   {accept: "application/json", encoding: "gzip", want: gzipJSON},
		"gzip rather than zstd":                   {encoding: "zstd;q=0.5, gzip;q=0.8", want: gzipJSON},
		"not zstd":                                {encoding: "zstd;q=0, gzip; q=0.3", want: gzipJSON},
		"rather none":                             {encoding: "identity, zstd;q=0.5", want: plainJSON},
		"as soon none as zstd":                    {encoding: "identity, zstd", want: zstdJSON},
		"none of both":                            {encoding: "br, deflate;q=0.5", want: plainJSON},
		"any encoding":                            {encoding: "*", want: plainJSON},
		"a weight that is no number":              {encoding: "zstd;q=high", want: plainJSON},
		"letters and spaces":                      {encoding: " GZIP ;Q=1", want: gzipJSON},
		"leaves in binary":                        {accept: "application/octet-stream", encoding: "zstd", want: rawLeaves},
		"leaves in binary, else anything":         {accept: "application/octet-stream, */*;q=0.1", want: rawLeaves},
		"leaves in binary as soon as JSON":        {accept: "application/octet-stream, application/json", want: plainJSON},
		"rather JSON than leaves in binary":       {accept: "application/json, application/octet-stream;q=0.9", want: plainJSON},
		"leaves in binary as soon as anything":    {accept: "*/*, application/octet-stream", want: plainJSON},
		"a page, which only a list can be":        {accept: "text/html", want: plainJSON},
		"not a list in binary, which it does not": {accept: "application/octet-stream;q=0", want: plainJSON},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			if tt.accept != "" {
				h.Set("Accept", tt.accept)
			}
			if tt.encoding != "" {
				h.Set("Accept-Encoding", tt.encoding)
			}
			if got := formatFor(h); got != tt.want {
				t.Errorf("the format is %s, want %s", got, tt.want)
			}
		})
	}
}
