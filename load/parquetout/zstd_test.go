package parquetout

import (
	"bytes"
	"testing"

	klauspost "github.com/klauspost/compress/zstd"
)

// TestStored: what is stored is a zstd frame, which decoders read back, and says its size.
func TestStored(t *testing.T) {
	decoder, err := klauspost.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	codec, err := newZstdCodec()
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 * storedBytes {
		page := bytes.Repeat([]byte("page "), n)[:n]
		frame, err := codec.Encode([]byte("old"), page)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decoder.DecodeAll(frame, nil); err != nil || !bytes.Equal(got, page) {
			t.Fatalf("%d bytes: read %q, %v", n, got, err)
		}
		var h klauspost.Header
		if err := h.Decode(frame); err != nil || !h.HasFCS || h.FrameContentSize != uint64(n) || n < storedBytes && len(frame) > n+10 {
			t.Fatalf("%d bytes: %+v, %v, in %d bytes", n, h, err, len(frame))
		}
	}
}
