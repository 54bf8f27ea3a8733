package load

import (
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The codecs by which Compress compresses text formats.
const (
	CodecNone = "none"
	CodecGzip = "gzip"
	CodecZstd = "zstd"
)

// Compress returns a writer that compresses to w. The writer's Close writes what is buffered
// and the end of the compressed data, and does not close w. codec is CodecNone (or ""),
// CodecGzip or CodecZstd.
//
// Equal input gives equal bytes, whatever the sizes of the writes. The gzip
// header holds no name and no time. Zstd compresses on the caller's goroutine, so
// blocks are cut by size and not by timing. Gzip uses level 6. Zstd uses level 1,
// because it compresses the text of forms nearly as well as level 3 and takes two
// thirds of the time.
func Compress(w io.Writer, codec string) (io.WriteCloser, error) {
	switch codec {
	case "", CodecNone:
		return plainCloser{w}, nil
	case CodecGzip:
		z, _ := gzip.NewWriterLevel(w, 6) // NewWriterLevel fails only for an unknown level
		// ModTime 0 means "no time". By default this library writes the seconds of the zero
		// time.Time, which readers show as a day in 2042.
		z.ModTime = time.Unix(0, 0)
		return z, nil
	case CodecZstd:
		z, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest)) // these options are valid
		return z, nil
	}
	return nil, fmt.Errorf("unknown compression %q; use %s, %s or %s", codec, CodecGzip, CodecZstd, CodecNone)
}

// CompressionExtension returns the extension that a codec adds to a file's name, with the dot:
// ".gz", ".zst", or "" for CodecNone and "". It returns "" for an unknown codec too, which
// Compress refuses.
func CompressionExtension(codec string) string {
	return map[string]string{CodecGzip: ".gz", CodecZstd: ".zst"}[codec]
}

// SplitCodec cuts the extension of a codec off a file's name, and returns the codec's name, ""
// if the name has no such extension.
func SplitCodec(name string) (stem, codec string) {
	ext := path.Ext(name)
	for _, codec := range []string{CodecGzip, CodecZstd} {
		if strings.EqualFold(ext, CompressionExtension(codec)) {
			return strings.TrimSuffix(name, ext), codec
		}
	}
	return name, ""
}

// plainCloser passes writes on uncompressed. Its Close does not close the writer.
type plainCloser struct{ io.Writer }

// Close does nothing, because nothing is buffered.
func (plainCloser) Close() error { return nil }
