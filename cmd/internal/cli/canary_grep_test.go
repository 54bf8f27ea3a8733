package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// canary is a key whose spellings all differ.
const canary = `ka+n a/r%y&=ü"<`

// lowerHex percent-encodes every byte, in lower-case hex.
func lowerHex(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02x", s[i])
	}
	return b.String()
}

func jsonText(s string) string {
	data, _ := json.Marshal(s)
	return strings.Trim(string(data), `"`)
}

// spellings are the forms in which a key could get out.
func spellings(key string) map[string]string {
	ascii := strings.Trim(fmt.Sprintf("%+q", key), `"`)
	return map[string]string{
		"plain":                   key,
		"query":                   url.QueryEscape(key),
		"query, blanks as %20":    strings.ReplaceAll(url.QueryEscape(key), "+", "%20"),
		"query, lower hex":        lowerEscapes(url.QueryEscape(key)),
		"%20, lower hex":          lowerEscapes(strings.ReplaceAll(url.QueryEscape(key), "+", "%20")),
		"path":                    url.PathEscape(key),
		"path, lower hex":         lowerEscapes(url.PathEscape(key)),
		"every byte":              lowerHex(key),
		"every byte, upper":       strings.ToUpper(lowerHex(key)),
		"twice":                   url.QueryEscape(url.QueryEscape(key)),
		"json":                    jsonText(key),
		"json without html":       strings.ReplaceAll(key, `"`, `\"`),
		"ascii":                   ascii,
		"html":                    html.EscapeString(key),
		"xml":                     strings.ReplaceAll(html.EscapeString(key), "&#34;", "&quot;"),
		"base64":                  base64.StdEncoding.EncodeToString([]byte(key)),
		"base64 without padding":  base64.RawStdEncoding.EncodeToString([]byte(key)),
		"base64 for addresses":    base64.URLEncoding.EncodeToString([]byte(key)),
		"hex":                     hex.EncodeToString([]byte(key)),
		"its tail, plain":         key[len(key)-7:],
		"its tail, query":         url.QueryEscape(key[len(key)-7:]),
		"its tail, %20 lower hex": lowerEscapes(url.QueryEscape(key[len(key)-7:])),
	}
}

// lowerEscapes turns %2F into %2f and leaves the rest.
func lowerEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			b.WriteString(strings.ToLower(s[i : i+3]))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// leaks names the spellings of the key that data holds.
func leaks(data []byte, key string) []string {
	var found []string
	for name, spelling := range spellings(key) {
		if bytes.Contains(data, []byte(spelling)) {
			found = append(found, name)
		}
		if j := jsonText(spelling); j != spelling && bytes.Contains(data, []byte(j)) {
			found = append(found, name+", in JSON")
		}
	}
	return found
}

// leaksUnder greps names and contents of every file under a folder. It gives
// one line for each leak, and how many files it read.
func leaksUnder(t testing.TB, root, key string) (lines []string, files int) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		for _, l := range leaks([]byte(path), key) {
			lines = append(lines, path+": its name holds the key ("+l+")")
		}
		if !d.Type().IsRegular() {
			return nil
		}
		files++
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, l := range leaks(data, key) {
			lines = append(lines, path+" holds the key ("+l+")")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines, files
}

// TestCanaryGrep holds that the canary test can fail: every spelling that is
// planted is found, in contents and in names.
func TestCanaryGrep(t *testing.T) {
	for name, spelling := range spellings(canary) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "log"), []byte("before "+spelling+" after\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if lines, files := leaksUnder(t, dir, canary); len(lines) == 0 || files != 1 {
			t.Errorf("%s: the planted %q was not found in %d files", name, spelling, files)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, url.PathEscape(canary)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if lines, _ := leaksUnder(t, dir, canary); len(lines) == 0 {
		t.Error("a file named by the key was not found")
	}
	if found := leaks([]byte(`a harmless line with kan, ar and y, {"error":"[redacted]"}`), canary); found != nil {
		t.Errorf("found %v in a harmless line", found)
	}
}
