package bank

import (
	"fmt"
	"slices"
)

// dataPage is the size of a page in bytes. A larger page makes a small write copy
// more bytes; a smaller page makes a write copy a longer list of pages. For an
// account of 3 MB the two costs are about equal at this size. The tree account
// with a history of 100 roots fits in one page.
const dataPage = 8 << 10

// pagedData is the data of an account in immutable pages. A new version shares
// its unchanged pages with the version before it. A write to a large account
// therefore costs little time, and many versions cost little memory.
type pagedData struct {
	length int
	// pages are all full except the last.
	pages [][]byte
}

// paged takes over the bytes, which must not be changed afterwards.
func paged(data []byte) pagedData {
	out := pagedData{length: len(data)}
	if len(data) > 0 {
		out.pages = make([][]byte, 0, (len(data)+dataPage-1)/dataPage)
	}
	for page := range slices.Chunk(data, dataPage) {
		out.pages = append(out.pages, page)
	}
	return out
}

// bytes returns all the data. It is a copy when there is more than one page.
func (d *pagedData) bytes() []byte {
	switch len(d.pages) {
	case 0:
		return []byte{}
	case 1:
		return d.pages[0]
	default:
		return slices.Concat(d.pages...)
	}
}

// read returns n bytes from an offset. The range must be inside the data. The
// result is a copy when the range spans more than one page.
func (d *pagedData) read(offset, n int) []byte {
	if n == 0 {
		return []byte{}
	}
	page, from := offset/dataPage, offset%dataPage
	if from+n <= dataPage {
		return d.pages[page][from : from+n : from+n]
	}
	out := make([]byte, 0, n)
	for len(out) < n {
		part := d.pages[page][from:]
		out = append(out, part[:min(len(part), n-len(out))]...)
		page, from = page+1, 0
	}
	return out
}

// with returns the data with patches written over it. A patch outside the data
// panics.
func (d *pagedData) with(patches []Patch) pagedData {
	out := pagedData{length: d.length, pages: slices.Clone(d.pages)}
	for _, patch := range patches {
		if patch.Offset < 0 || patch.Offset+len(patch.Data) > d.length {
			panic(fmt.Sprintf("a patch of %d bytes at offset %d is outside of the account's %d bytes", len(patch.Data), patch.Offset, d.length))
		}
		offset, rest := patch.Offset, patch.Data
		for len(rest) > 0 {
			page, from := offset/dataPage, offset%dataPage
			if &out.pages[page][0] == &d.pages[page][0] {
				out.pages[page] = slices.Clone(d.pages[page])
			}
			n := copy(out.pages[page][from:], rest)
			offset, rest = offset+n, rest[n:]
		}
	}
	return out
}

// Patch is bytes to write over the data of an account, from an offset on.
type Patch struct {
	Offset int
	Data   []byte
}
