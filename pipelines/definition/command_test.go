package definition

import "testing"

// TestCommand: a proposed command has the flags that the definition was given with, and a
// shell takes its words as they are.
func TestCommand(t *testing.T) {
	for want, d := range map[string]Definition{
		"formetl run DEFINITION --full":                                                 {},
		"formetl run feedback.yaml --full":                                              {File: "feedback.yaml"},
		"formetl run 'my forms/a.yaml' --var stage=test --state /var/lib/x --full":      {File: "my forms/a.yaml", Given: []string{"--var", "stage=test", "--state", "/var/lib/x"}},
		`formetl run a.yaml --var 'who=it'\''s $HOME' --var 'none=é' --state '' --full`: {File: "a.yaml", Given: []string{"--var", "who=it's $HOME", "--var", "none=é", "--state", ""}},
	} {
		if got := d.Command("run", "", "--full"); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
