package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestLiarIsNoticed has a program that ends well, whatever it is told, and does
// nothing.
func TestLiarIsNoticed(t *testing.T) {
	liar := needs.Program(t, "true", "apt-get install coreutils")
	var out, problems bytes.Buffer
	code := run([]string{"-lives", "2", "-seed", "1", "-formetl", liar}, &out, &problems)
	if code != 1 || !strings.Contains(problems.String(), "2 of 2 lives went wrong") {
		t.Errorf("it ended with %d: %s", code, &problems)
	}
	if text := out.String(); !strings.Contains(text, "repeat it with -lives 1 -seed 1\n") || !strings.Contains(text, "version: 1\nname: campaign") || !strings.Contains(text, "the folder is ") {
		t.Errorf("it does not tell the seed, the definition and the folder:\n%s", text)
	}
}

// TestEndsAreChecked tells which ends of a process are to be expected.
func TestEndsAreChecked(t *testing.T) {
	const says = "the service ignores the lower bound of ids; `formetl doctor` shows what it honours"
	for _, c := range []struct {
		name      string
		step      step
		process   *process
		stderr    string
		signalled bool
		ignores   bool // the service ignores the lower bound of ids
		want      bool
	}{
		{name: "well", want: true},
		{name: "a service that ignores ids", process: &process{code: 65}, stderr: says, ignores: true, want: true},
		{name: "it, and nobody says so", process: &process{code: 65}, ignores: true},
		{name: "a lawful service", process: &process{code: 65}, stderr: says},
		{name: "a change with every request", step: step{restless: true}, process: &process{code: 75}, want: true},
		{name: "data at every request", step: step{restless: true}, process: &process{code: 65}},
		{name: "many changes", step: step{changes: []int{1, 2, 3, 4, 5}}, process: &process{code: 75}},
		{name: "busy for no reason", process: &process{code: 75}},
		{name: "in a storm", step: step{weather: weather{storm: 0.1}}, process: &process{code: 75}, want: true},
		{name: "data in a storm", step: step{weather: weather{storm: 0.1}}, process: &process{code: 65}},
		{name: "killed", step: step{fault: "parts:1"}, process: &process{code: 137}, want: true},
		{name: "killed by nobody", process: &process{code: 137}},
		{name: "terminated", step: step{signal: 15}, process: &process{code: 143}, signalled: true, want: true},
		{name: "terminated before it was told to", step: step{signal: 15}, process: &process{code: 143}},
		{name: "interrupted and terminated", step: step{signal: 2}, process: &process{code: 143}, signalled: true},
		{name: "a bug", step: step{weather: weather{storm: 0.1}}, process: &process{code: 70}},
		{name: "a panic", stderr: "panic: nil map"},
	} {
		l := &life{service: &service{form: &formservice.Server{Faults: formservice.Faults("").With("ignore-min-id", c.ignores)}}}
		if c.process == nil {
			c.process = &process{}
		}
		c.process.stopped.Store(c.signalled)
		c.process.stderr.WriteString(c.stderr)
		if err := l.mayEnd(&c.step, c.process); (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestSecretIsFound looks for the key in every spelling.
func TestSecretIsFound(t *testing.T) {
	key := &life{key: "k/5f2a9c1177+=4%z"}
	for text, want := range map[string]bool{
		"nothing": false, "fs_api_key=k/5f2a9c1177+=4%z": true, "k%2F5f2a9c1177%2B%3D4%25z": true, "…5f2a9c1177+=4…": true,
	} {
		if err := key.unsaid("it", []byte(text)); (err != nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
