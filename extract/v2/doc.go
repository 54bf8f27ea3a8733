// Package v2 speaks the JSON generation of a Form Results Service (API v2). Its Client is
// an extract.Client for answers in JSON.
//
// A Client turns a query into a request, sends it by a transport.Sender, and decodes the
// answer. The token goes into the Authorization header and nowhere else. Results are
// decoded into a page.Page by a scanner of our own, which makes spans of the answer's
// bytes instead of copies. The decoder guesses what comes next by the previous result,
// and compares bytes. The other answers are small and are read by encoding/json.
//
// A page of v2 holds the same values as a page of v1. Dates, which the service sends in
// UTC, become wall-clock time of the account's zone. Decoding is strict: characters that
// v1 cannot hold are replaced and counted, and anything else that is wrong is an error.
// The error names the place and never quotes it.
//
// What is known of the service stands in service-v2.md, with a confidence for each
// fact. Nothing that is less than certain is required of a server. Begin reading at
// Client.Results, and for the decoder at decoder.decode. README.md holds the
// measurements against three libraries.
package v2
