package cli

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/formetl/formetl/load/loadtest"
)

// Every personal value of the test holds one of these, behind its first two
// characters. Neither can occur by chance.
const (
	privateWord   = "Qx7Zk9PRIV4vWm"
	privateNumber = "907856341290771"
)

// shapesOf are the forms in which a word may be found inside of anything: the
// characters around it are not known.
func shapesOf(word string) [][]byte {
	var all [][]byte
	add := func(texts ...string) {
		for _, t := range texts {
			all = append(all, []byte(t))
		}
	}
	upper := strings.ToUpper(hex.EncodeToString([]byte(word)))
	add(word, strings.ToLower(word), strings.ToUpper(word), strings.ToLower(upper), upper, lowerHex(word))
	units := utf16.Encode([]rune(word))
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		var wide []byte
		for _, u := range units {
			wide = order.AppendUint16(wide, u)
		}
		all = append(all, wide)
	}
	for shift := range 3 { // base64 depends on where the word begins
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), word...))
		add(text[(8*shift+5)/6 : 8*(shift+len(word))/6])
	}
	return all
}

// shows tells whether data holds a private word or number in any shape.
func shows(data []byte) bool {
	for _, word := range []string{privateWord, privateNumber} {
		for _, shape := range shapesOf(word) {
			if bytes.Contains(data, shape) {
				return true
			}
		}
	}
	return false
}

// opened are the bytes of a file and all that it holds compressed or encoded,
// as text.
func opened(t testing.TB, name string, data []byte) [][]byte {
	t.Helper()
	all := [][]byte{data}
	try := func(inner []byte, err error) {
		if err != nil {
			t.Errorf("%s cannot be opened: %v", name, err)
		}
		all = append(all, opened(t, name+" (opened)", inner)...)
	}
	switch {
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(r)
		}
		try(data, err)
	case bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		r, err := zstd.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(r)
			r.Close()
		}
		try(data, err)
	case bytes.HasPrefix(data, []byte("PAR1")) && bytes.HasSuffix(data, []byte("PAR1")): // or it was cut off
		_, rows, err := loadtest.ParquetLines(data)
		try(rows, err)
	case bytes.HasPrefix(data, []byte("ARROW1")):
		r, err := ipc.NewFileReader(bytes.NewReader(data))
		if err != nil {
			break // cut off
		}
		var text []byte
		for i := range r.NumRecords() {
			batch, err := r.RecordBatchAt(i)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := json.Marshal(array.RecordToStructArray(batch))
			text = append(text, rows...)
			try(nil, err)
			batch.Release()
		}
		try(text, r.Close())
	case bytes.HasPrefix(data, []byte("PK\x03\x04")):
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			break // cut off
		}
		for _, f := range r.File {
			part, err := f.Open()
			if err == nil {
				data, err = io.ReadAll(part)
			}
			try(data, err)
		}
	}
	return all
}

// privateUnder names the files under a folder that hold a private value, and
// all files with what they hold when they are opened.
func privateUnder(t testing.TB, root string) (leaky []string, all map[string][][]byte) {
	t.Helper()
	all = map[string][][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all[name] = opened(t, name, data)
		if shows([]byte(path)) || slices.ContainsFunc(all[name], shows) {
			leaky = append(leaky, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return leaky, all
}

// TestPrivateGrep holds that what is hidden in any shape is found.
func TestPrivateGrep(t *testing.T) {
	packed := func(data []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(data)
		_ = w.Close()
		return b.Bytes()
	}
	for name, data := range map[string][]byte{
		"plain": []byte("x" + privateWord + "y"), "number": []byte(privateNumber), "hex": []byte(hex.EncodeToString([]byte("ab" + privateWord + "c"))),
		"base64": []byte(base64.StdEncoding.EncodeToString([]byte(privateWord + "c"))), "base64, shifted": []byte(base64.StdEncoding.EncodeToString([]byte("a" + privateWord))),
		"base64, shifted twice": []byte(base64.URLEncoding.EncodeToString([]byte("ab" + privateWord + "cd"))), "gzip": packed([]byte(privateWord)), "gzip twice": packed(packed([]byte(privateWord))),
		"upper case": []byte(strings.ToUpper(privateWord)),
	} {
		dir := t.TempDir()
		write(t, dir, "file", string(data))
		if leaky, _ := privateUnder(t, dir); len(leaky) != 1 {
			t.Errorf("%s was not found", name)
		}
	}
	if shows([]byte("ab [redacted] " + hex.EncodeToString([]byte(strings.Repeat("harmless", 9))))) {
		t.Error("found in a harmless line")
	}
}
