package worker

import (
	"errors"
	"testing"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
)

func asError[E error](err error, into *E) bool { return errors.As(err, into) }

// decoded is the input that a Form workflow goes on with.
func decoded(t *testing.T, next *workflow.ContinueAsNewError) (in FormInput) {
	t.Helper()
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &in); err != nil {
		t.Fatal(err)
	}
	return in
}

// decodedPipeline is the input that a Pipeline workflow goes on with.
func decodedPipeline(t *testing.T, next *workflow.ContinueAsNewError) (in PipelineInput) {
	t.Helper()
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &in); err != nil {
		t.Fatal(err)
	}
	return in
}
