package worker

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// TestBugHidesSecrets: what a worker tells of a panic holds no secret of the definition.
func TestBugHidesSecrets(t *testing.T) {
	const key, password = "canary-key", "canary-password"
	var log bytes.Buffer
	a := &Activities{
		State: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil)),
		Load: func(context.Context, Source) (*definition.Definition, error) {
			return &definition.Definition{
				Source:  definition.Source{Key: transport.NewSecret(key)},
				Outputs: []definition.Output{{Database: &definition.Database{Secrets: []transport.Secret{transport.NewSecret(password)}}}},
			}, nil
		},
		BuiltIn: func(*slog.Logger) output.BuiltIn { panic("met " + key + " and " + password) },
	}
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(a)
	_, err := env.ExecuteActivity(a.List, PipelineInput{Source: Source{Path: "feedback.yaml"}})
	if err == nil || !strings.Contains(err.Error(), "a bug in formetl: met ") {
		t.Fatalf("the error is %v", err)
	}
	for _, text := range []string{err.Error(), log.String()} {
		if strings.Contains(text, key) || strings.Contains(text, password) || !strings.Contains(text, "a bug in formetl: met ") {
			t.Errorf("told: %s", text)
		}
	}
}
