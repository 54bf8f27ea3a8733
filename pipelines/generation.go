package pipelines

import (
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/definition"
)

// written returns what a manifest says of a generation of the service. Those of API v1 say
// nothing, because they are older than the other generation.
func written(client extract.Client) string {
	if api := client.Generation(); api != string(definition.APIv1) {
		return api
	}
	return ""
}
