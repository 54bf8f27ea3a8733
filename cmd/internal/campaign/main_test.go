package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestLives lives a few lives with everything that lives have by default.
func TestLives(t *testing.T) {
	var out, problems bytes.Buffer
	if code := run([]string{"-lives", "6", "-seed", "1"}, &out, &problems); code != 0 {
		t.Errorf("it ended with %d\n%s%s", code, &out, &problems)
	}
	if !strings.Contains(out.String(), "6 lives in") {
		t.Errorf("it tells nothing of six lives:\n%s", &out)
	}
}

// TestLiarIsNoticed has a program that ends well, whatever it is told, and does
// nothing.
func TestLiarIsNoticed(t *testing.T) {
	liar := needs.Program(t, "true", "apt-get install coreutils")
	var out, problems bytes.Buffer
	code := run([]string{"-lives", "2", "-seed", "1", "-formetl", liar, "-without", "kills,signals"}, &out, &problems)
	if code != 1 || !strings.Contains(problems.String(), "2 of 2 lives went wrong") {
		t.Errorf("it ended with %d: %s", code, &problems)
	}
	if text := out.String(); !strings.Contains(text, "repeat it with -life 1\n") || !strings.Contains(text, "version: 1\nname: campaign") || !strings.Contains(text, "the folder is ") {
		t.Errorf("it does not tell the seed, the definition and the folder:\n%s", text)
	}
}

// TestFlags refuses features that there are not.
func TestFlags(t *testing.T) {
	var out, problems bytes.Buffer
	if code := run([]string{"-without", "earthquakes"}, &out, &problems); code != 64 || !strings.Contains(problems.String(), `no feature "earthquakes"`) {
		t.Errorf("it ended with %d: %s", code, &problems)
	}
}

// TestEndsAreChecked tells which ends of a process are to be expected.
func TestEndsAreChecked(t *testing.T) {
	l := &life{key: "a key of some length", def: &definition{}}
	for _, c := range []struct {
		name string
		step step
		o    outcome
		want bool
	}{
		{"well", step{}, outcome{}, true},
		{"busy for no reason", step{}, outcome{code: 75}, false},
		{"in a storm", step{storm: 0.1}, outcome{code: 75}, true},
		{"data in a storm", step{storm: 0.1}, outcome{code: 65}, false},
		{"killed", step{fault: "parts:1"}, outcome{code: -1, killed: true}, true},
		{"killed by nobody", step{}, outcome{code: -1, killed: true}, false},
		{"terminated", step{signal: 15}, outcome{code: 143, stopped: true}, true},
		{"terminated before it was told to", step{signal: 15}, outcome{code: 143}, false},
		{"interrupted and terminated", step{signal: 2}, outcome{code: 143, stopped: true}, false},
		{"a bug", step{storm: 0.1}, outcome{code: 70}, false},
		{"a panic", step{}, outcome{stderr: "panic: nil map"}, false},
	} {
		if err := l.mayEnd(&c.step, &c.o); (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestKeyIsFound looks for the key in every spelling.
func TestKeyIsFound(t *testing.T) {
	key := apiKey("k/5f2a9c1177+=4%z")
	for text, want := range map[string]bool{
		"nothing": false, "fs_api_key=k/5f2a9c1177+=4%z": true, "k%2F5f2a9c1177%2B%3D4%25z": true, "…5f2a9c1177+=4…": true,
	} {
		if key.in([]byte(text)) != want {
			t.Errorf("%s: not %t", text, want)
		}
	}
}
