package v1

import (
	"strings"
	"testing"
)

// TestPolicyAcceptances holds documents that encoding/xml refuses and the
// decoder reads, each with the reason.
func TestPolicyAcceptances(t *testing.T) {
	const fffd = "\ufffd"
	for _, c := range []struct {
		name, why, body, want string
		replaced              int
	}{
		{"raw control character", "answers hold what people paste; one character must not fail a run", oneValue("a\vb"), "a" + fffd + "b", 1},
		{"raw NUL", "as above", oneValue("\x00"), fffd, 1},
		{"control character by number", "as above", oneValue("a&#11;&#x1F;b"), "a" + fffd + fffd + "b", 2},
		{"NUL by number", "as above", oneValue("&#0;"), fffd, 1},
		{"beyond Unicode", "as above", oneValue("&#x110000;&#99999999999999999999;"), fffd + fffd, 2},
		{"noncharacters", "U+FFFE and U+FFFF are forbidden by XML 1.0", oneValue("\ufffe\uffff&#xFFFE;&#65535;"), strings.Repeat(fffd, 4), 4},
		{"invalid UTF-8", "each byte by itself", oneValue("a\xff\xc3b\xe2\x82"), "a" + fffd + fffd + "b" + fffd + fffd, 4},
		{"surrogates in UTF-8", "each byte by itself", oneValue("\xed\xa0\xbd\xed\xb8\x80"), strings.Repeat(fffd, 6), 6},
		{"overlong NUL", "as above", oneValue("\xc0\x80"), fffd + fffd, 2},
		{"XML 1.1", "the version is not looked at", "<?xml version='1.1'?>" + oneValue("x"), "x", 0},
		{"another charset", "see TestCharsets", "<?xml version='1.0' encoding='latin1'?>" + oneValue("\xe9"), "\u00e9", 0},
		{"newer names", "the fifth edition of XML 1.0 allows names that encoding/xml's fourth does not", inResponse("<\U00010000/>" + oneResult("x")), "x", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := oracleTree([]byte(c.body)); err == nil {
				t.Fatal("encoding/xml reads it too: this is no difference in policy")
			}
			p, err := decodePage([]byte(c.body), "")
			if err != nil {
				t.Fatalf("%v: %s", err, c.why)
			}
			defer p.Release()
			if got := string(p.Value(p.Cells(0)[0], 0)); got != c.want || p.Replaced != c.replaced {
				t.Errorf("%q with %d replaced, want %q with %d: %s", got, p.Replaced, c.want, c.replaced, c.why)
			}
		})
	}
}

func oneResult(value string) string {
	return `<results><result id="1"><metas><meta id="m">` + value + `</meta></metas></result></results>`
}

// TestPolicyReplacedAnywhere: encoding/xml does not look at the characters of
// comments; the decoder counts what it replaces wherever it stands.
func TestPolicyReplacedAnywhere(t *testing.T) {
	p := mustDecode(t, inResponse("<!-- \v -->"+oneResult("x")))
	defer p.Release()
	if p.Replaced != 1 {
		t.Errorf("%d replaced", p.Replaced)
	}
}

// TestPolicySurrogateReference: both replace a surrogate that is written as a
// reference; the decoder also counts it.
func TestPolicySurrogateReference(t *testing.T) {
	p := mustDecode(t, oneValue("&#xD83D;&#xDE00;"))
	defer p.Release()
	if got := string(p.Value(p.Cells(0)[0], 0)); got != "\ufffd\ufffd" || p.Replaced != 2 {
		t.Errorf("%q with %d replaced", got, p.Replaced)
	}
}

// TestPolicyPrefixes: names are compared as they are written. encoding/xml
// resolves prefixes and compares local names; the service has no prefixes.
func TestPolicyPrefixes(t *testing.T) {
	p := mustDecode(t, inResult(`<items xmlns:x=""><item x:id="2" id="1"><x:value>a</x:value><value>b</value></item></items>`))
	defer p.Release()
	if c := p.Cells(0); len(c) != 1 || c[0].Values != 1 || string(p.Value(c[0], 0)) != "b" || p.Fields[0].ID != "1" {
		t.Errorf("cells %+v, fields %+v", c, p.Fields)
	}
}
