package load

import (
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Codecs that Compress puts around a text format.
const (
	CodecNone = "none"
	CodecGzip = "gzip"
	CodecZstd = "zstd"
)

// Compress returns a writer that compresses to w. Close writes what is
// buffered and the codec's end; it does not close w. codec is CodecNone (or
// ""), CodecGzip or CodecZstd.
//
// Equal input gives equal bytes, whatever the sizes of the writes: the gzip
// header holds no name and no time, and zstd compresses on the caller's
// goroutine (its blocks are cut by size, not by who was ready first). gzip is
// level 6 and zstd is level 1, the fastest: text of forms shrinks nearly as
// well as at level 3 for two thirds of the time.
func Compress(w io.Writer, codec string) (io.WriteCloser, error) {
	switch codec {
	case "", CodecNone:
		return plainCloser{w}, nil
	case CodecGzip:
		z, err := gzip.NewWriterLevel(w, 6)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		// 0 says "no time". Left alone, this library writes the zero time.Time's
		// seconds, which readers show as a day in 2042.
		z.ModTime = time.Unix(0, 0)
		return z, nil
	case CodecZstd:
		z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		return z, nil
	}
	return nil, fmt.Errorf("there is no compression %q for text: use %s, %s or %s", codec, CodecGzip, CodecZstd, CodecNone)
}

// CompressionExtension is what a codec adds to a file's name, with the dot:
// ".gz", ".zst", or nothing for CodecNone and "". An unknown codec adds
// nothing; Compress refuses it.
func CompressionExtension(codec string) string {
	switch codec {
	case CodecGzip:
		return ".gz"
	case CodecZstd:
		return ".zst"
	}
	return ""
}

// plainCloser passes writes through.
type plainCloser struct{ io.Writer }

// Close does nothing: there is nothing to end.
func (plainCloser) Close() error { return nil }
