package load_test

import (
	"bytes"
	stdgzip "compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/formetl/formetl/load"
)

// compressed returns data through Compress, written in pieces of size bytes.
func compressed(t testing.TB, codec string, data []byte, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := load.Compress(&out, codec)
	if err != nil {
		t.Fatal(err)
	}
	for len(data) > 0 {
		n := min(size, len(data))
		if _, err := z.Write(data[:n]); err != nil {
			t.Fatal(err)
		}
		data = data[n:]
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// decompressed undoes Compress, gzip with the standard library.
func decompressed(codec string, data []byte) ([]byte, error) {
	switch codec {
	case load.CodecGzip:
		r, err := stdgzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	case load.CodecZstd:
		r, err := zstd.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	}
	return data, nil
}

func TestCompress(t *testing.T) {
	var text bytes.Buffer
	for i := range 200_000 {
		_, _ = fmt.Fprintf(&text, "%d,Complete,user%d@example.com\n", i, i*7919%100_003)
	}
	for codec, extension := range map[string]string{load.CodecGzip: ".gz", load.CodecZstd: ".zst", load.CodecNone: "", "": ""} {
		t.Run("codec "+codec, func(t *testing.T) {
			if got := load.CompressionExtension(codec); got != extension {
				t.Errorf("the extension is %q", got)
			}
			one := compressed(t, codec, text.Bytes(), text.Len())
			for _, size := range []int{1000, 65_536, 1 << 20} {
				if !bytes.Equal(one, compressed(t, codec, text.Bytes(), size)) {
					t.Errorf("writes of %d bytes give other bytes", size)
				}
			}
			back, err := decompressed(codec, one)
			if err != nil || !bytes.Equal(back, text.Bytes()) {
				t.Errorf("%d bytes came back: %v", len(back), err)
			}
			if extension != "" && len(one)*2 > text.Len() {
				t.Errorf("%d bytes of %d", len(one), text.Len())
			}
			empty := compressed(t, codec, nil, 1)
			if back, err := decompressed(codec, empty); err != nil || len(back) != 0 {
				t.Errorf("nothing came back as %d bytes: %v", len(back), err)
			}
		})
	}
}

func TestCompressHasNoTime(t *testing.T) {
	file := compressed(t, load.CodecGzip, []byte("x"), 1)
	if file[3] != 0 || !bytes.Equal(file[4:8], make([]byte, 4)) {
		t.Errorf("the gzip header holds flags or a time: %x", file[:10])
	}
}

func TestCompressRefuses(t *testing.T) {
	if _, err := load.Compress(io.Discard, "bzip2"); err == nil || !strings.Contains(err.Error(), `"bzip2"`) {
		t.Errorf("the error is %v", err)
	}
	if got := load.CompressionExtension("bzip2"); got != "" {
		t.Errorf("the extension is %q", got)
	}
}
