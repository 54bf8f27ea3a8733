package definition

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// read reads a text as a section of a few keys, and gives what is wrong with it.
func read(t *testing.T, text string) (name string, size int, list []string, wrong string) {
	t.Helper()
	doc, root, err := parseDocument("f.yaml", []byte(text))
	if err != nil {
		return "", 0, nil, err.Error()
	}
	root.Section(
		required("name", func(v value) { name, _ = v.Text() }),
		optional("size", intoInteger(&size, 1, 9)),
		optional("list", func(v value) {
			for _, e := range v.List() {
				word, _ := e.Word()
				list = append(list, word)
			}
		}),
		optional("key", func(v value) { v.Hidden().OneOf("one", "two") }),
		optional("group", func(v value) { v.Section(optional("inner", func(v value) { v.Boolean() })) }),
	)
	if err := doc.Err(); err != nil {
		wrong = err.Error()
	}
	return name, size, list, wrong
}

func TestSection(t *testing.T) {
	name, size, list, wrong := read(t, "name: &n 007\nsize: 3\nlist: [a, true, *n]\ngroup:\n  # inner: true\n")
	if name != "007" || size != 3 || !slices.Equal(list, []string{"a", "true", "007"}) || wrong != "" {
		t.Errorf("got %q, %d, %q, %s", name, size, list, wrong)
	}
	for text, want := range map[string]string{
		"size: 3":                     "f.yaml:1:1: name: the key is required and missing; add name:",
		"name: n\nsise: 3":            "f.yaml:2:1: sise: the key is not known; did you mean size?",
		"name: n\nname: m":            "f.yaml:2:1: name: the key stands here a second time; the first is on line 1",
		"name: n\nsize: 10":           `f.yaml:2:7: size: "10" is not a whole number in the range`,
		"name: n\ngroup: {inner: no}": "f.yaml:2:16: group.inner: true or false is expected, not text",
		"name: n\nlist: [[a]]":        "list[0]: text is expected, not a list",
		"name: n\n<<: {size: 3}":      "the merge key << is not used here",
		"name: !!str n":               "tags are not used here",
		"name: *nowhere":              "an alias has no anchor in this file",
		"name: n\n---\nname: m":       "more than one YAML document",
		"# nothing":                   "the file is empty",
		"name: \"n":                   "this is not YAML",
		strings.Repeat("[", 99):       "this is not YAML",
	} {
		if _, _, _, got := read(t, text); !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// No problem shows a hidden value, a value that swallowed a key, or a secret that
// stands where a key is expected.
func TestSecretsAreNotShown(t *testing.T) {
	const secret = "k9CANARY"
	for _, text := range []string{
		"name: n\nkey: " + secret,
		"name: n\nkey: [" + secret + "]",
		"name: n\ngroup: {" + secret + "}",
		"name: n\n" + secret + "9_longer_than_any_key: x",
		"name: n\ngroup: " + secret,
		"name: n\nsize: \"3\n  api_key: " + secret + "\"",
		"name: \"n\nkey: " + secret,
	} {
		doc, root, err := parseDocument("f.yaml", []byte(text))
		if err == nil {
			root.Section(
				required("name", func(v value) { v.Text() }),
				optional("size", func(v value) { v.OneOf("small", "large") }),
				optional("key", func(v value) { v.Hidden().OneOf("one", "two") }),
				optional("group", func(v value) { v.Section() }),
			)
			err = doc.Err()
		}
		var wrong *Error
		if !errors.As(err, &wrong) || strings.Contains(wrong.Error(), secret) {
			t.Errorf("%q: %v", text, err)
		}
	}
	doc, root, err := parseDocument("f.yaml", []byte("name: "+secret))
	if err != nil {
		t.Fatal(err)
	}
	root.Section(required("name", func(v value) { v.OneOf("a", "b") }))
	doc.Redact(func(s string) string { return strings.ReplaceAll(s, secret, "(removed)") })
	if err := doc.Err(); err == nil || strings.Contains(err.Error(), secret) { //nolint:errorlint // it is one
		t.Errorf("after redacting: %v", err)
	}
}

func TestReadFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := readFile(file, 5); err != nil || string(data) != "12345" {
		t.Errorf("got %q, %v", data, err)
	}
	for path, want := range map[string]string{file: "longer than 4 bytes", filepath.Dir(file): "is a directory", "/dev/zero": "longer than 4 bytes", file + "2": "no such file"} {
		if _, err := readFile(path, 4); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
	if _, _, err := readDocument(file + "2"); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(fmt.Sprint(err), file+"2: the file cannot be read: ") {
		t.Errorf("got %v", err)
	}
}
