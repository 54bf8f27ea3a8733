package page

import (
	"bytes"
	"testing"
	"unicode/utf8"
)

// TestInterns: what a builder remembers of earlier answers is bounded.
func TestInterns(t *testing.T) {
	var b Builder
	long := bytes.Repeat([]byte("x"), maxInternLen+1)
	if b.Intern(long) != string(long) || len(b.interns) != 0 {
		t.Error("a long string is kept")
	}
	for i := range 3 * maxInterns {
		id := []byte{'a' + byte(i%16), 'a' + byte(i/16%16), 'a' + byte(i/256%16), 'a' + byte(i/4096)}
		if got := b.Intern(id); got != string(id) {
			t.Fatalf("%q became %q", id, got)
		}
		if len(b.interns) > maxInterns {
			t.Fatalf("%d strings are kept", len(b.interns))
		}
	}
}

// TestHugePageIsNotPooled: Release lets go of a page beyond MaxPooled.
func TestHugePageIsNotPooled(t *testing.T) {
	var b Builder
	b.Begin()
	b.Text = append(b.Text, make([]byte, MaxPooled+1)...)
	p := b.Finish()
	p.Release()
	if len(p.text) == 0 {
		t.Error("the page was emptied for the pool")
	}
}

// TestCleanEnd tries every byte at every place in a word.
func TestCleanEnd(t *testing.T) {
	for length := range 20 {
		for at := range length {
			for c := range 256 {
				b := bytes.Repeat([]byte(" "), length)
				b[at] = byte(c)
				want := length
				if c < ' ' && c != '\n' && c != '\t' || c >= utf8.RuneSelf {
					want = at
				}
				if got := cleanEnd(b); got != want {
					t.Fatalf("%q: %d, want %d", b, got, want)
				}
			}
		}
	}
}
